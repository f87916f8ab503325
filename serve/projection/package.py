"""What a package consists of: which files below a skill's folder are copied, and why others are not.

Looking opens no file. The fingerprint of what was seen tells cheaply whether anything may have changed since.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from blake3 import blake3

from serve.ignored import IGNORED
from serve.projection.errors import ProjectionError
from serve.projection.layout import MARKER, SKILL_FILE

MAX_DEPTH = 24
MAX_LOOKED = 20  # entries that are looked at for each file that may be copied
SKIPPED = 100  # of what was left out, how much is named
_SHOWN = 160
# A file that changed this shortly before it was looked at may change again within one tick of the clock, without a trace.
RACY_NS = 20_000_000


class Found(NamedTuple):
    """A file to copy. path: relative to the package, "/"-separated, "SKILL.md" for the skill's own file."""

    path: str
    source: str
    size: int
    mode: int


class Package(NamedTuple):
    """What was seen. files: in order, SKILL.md first. skipped: what is left out, each with its reason.

    fingerprint: "" when a file changed so shortly before that it does not tell anything.
    """

    root: str
    files: list[Found]
    skipped: list[str]
    fingerprint: str


def look(skill_path: str, limit: int, now_ns: int) -> Package:
    """Look at the package of the SKILL.md at `skill_path`. Raises ProjectionError for more than `limit` files, or none."""
    root, main = os.path.split(skill_path)
    search = _Look(root, main, limit)
    try:
        search.folder("", 0)
        found = os.stat(skill_path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ProjectionError(
            f"the package cannot be read: {reason}", where=skill_path, next_step="run `retrieval build`"
        ) from error
    if not stat.S_ISREG(found.st_mode):
        raise ProjectionError(
            "what lies there is no regular file any more", where=skill_path, next_step="run `retrieval build`"
        )
    search.see(SKILL_FILE, found)
    files = [Found(SKILL_FILE, main, found.st_size, found.st_mode), *sorted(search.files)]
    racy = search.newest >= now_ns - RACY_NS
    return Package(root, files, sorted(search.skipped), "" if racy else search.fingerprint())


def shown(name: str) -> str:
    """A foreign file name as one short line of plain text."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def named(skipped: list[str]) -> tuple[str, ...]:
    """The first of what was left out, and how many more there are."""
    if len(skipped) <= SKIPPED:
        return tuple(skipped)
    return (*skipped[:SKIPPED], f"and {len(skipped) - SKIPPED} more")


class _Look:
    """One look at a package."""

    def __init__(self, root: str, main: str, limit: int) -> None:
        self.root = root
        self.main = main
        self.limit = limit
        self.files: list[Found] = []
        self.skipped: list[str] = []
        self.marks: list[str] = []
        self.newest = 0
        self.looked = 0

    def fingerprint(self) -> str:
        return blake3("\n".join(sorted(self.marks)).encode("utf-8", "surrogateescape")).hexdigest(length=16)

    def see(self, path: str, found: os.stat_result) -> None:
        """Let a file's size, times, inode and mode go into the fingerprint."""
        key = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)
        self.marks.append(f"{path}\0{key}")
        self.newest = max(self.newest, found.st_mtime_ns, found.st_ctime_ns)

    def skip(self, path: str, reason: str) -> None:
        self.skipped.append(f"{shown(path)}: {reason}")
        self.marks.append(f"{path}\0{reason}")

    def folder(self, within: str, depth: int) -> None:
        """Look at one folder of the package and those below it. Raises OSError for the package's own."""
        prefix = f"{within}/" if within else ""
        try:
            with os.scandir(f"{self.root}/{within}") as listed:
                entries = list(listed)
        except OSError as error:
            if not within:
                raise
            self.skip(prefix, f"cannot be listed: {(error.strerror or '').lower()}")
            return
        self.looked += len(entries)
        if self.looked > self.limit * MAX_LOOKED + 1_000:
            raise ProjectionError(
                f"the package holds more than {self.looked - 1} entries",
                where=self.root,
                next_step="keep what is no part of the skill out of its folder, or raise RETRIEVAL_PROJECT_MAX_FILES",
            )
        if within and any(entry.name.casefold() == "skill.md" and not _is_folder(entry) for entry in entries):
            self.skip(prefix, "a skill of its own")
            return
        for entry in entries:
            self.entry(entry, prefix, depth)

    def entry(self, entry: os.DirEntry[str], prefix: str, depth: int) -> None:
        """Decide about one entry of a folder."""
        name, path = entry.name, prefix + entry.name
        folded = name.casefold()
        if not prefix and folded == "skill.md":
            if name != self.main:
                self.skip(path, "a second SKILL.md")
        elif not prefix and folded == MARKER:
            self.skip(path, "the name is kept for Retrieval's own mark")
        elif not name.isprintable():
            self.skip(path, "a name with characters that cannot be shown")
        elif entry.is_symlink():
            self.skip(path, "a symbolic link")
        elif _is_folder(entry):
            if name in IGNORED:
                self.skip(f"{path}/", "a folder of tools")
            elif depth >= MAX_DEPTH:
                self.skip(f"{path}/", f"more than {MAX_DEPTH} folders deep")
            else:
                self.folder(path, depth + 1)
        else:
            self.file(entry, path)

    def file(self, entry: os.DirEntry[str], path: str) -> None:
        """Take a file, if it is a regular one."""
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError as error:
            self.skip(path, f"cannot be looked at: {(error.strerror or '').lower()}")
            return
        if not stat.S_ISREG(found.st_mode):
            self.skip(path, f"{_KINDS.get(stat.S_IFMT(found.st_mode), 'something')}, not a file")
            return
        self.files.append(Found(path, path, found.st_size, found.st_mode))
        self.see(path, found)
        if len(self.files) >= self.limit:
            raise ProjectionError(
                f"the package has more than {self.limit} files",
                where=self.root,
                next_step="raise RETRIEVAL_PROJECT_MAX_FILES, or use the files where they are",
            )


_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symbolic link",
}


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
