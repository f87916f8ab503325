"""Remembers what each folder of a source held, so that a later scan lists only the folders that changed."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from serve.ignored import IGNORED

SKILL_FILE = "SKILL.md"
# A change within the same tick of the file system's clock leaves a folder's times as they were. A folder that had changed
# this shortly before it was listed is listed again.
RACY_NS = 2_000_000_000

_VERSION = 1


class Listing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One folder's entries, each group sorted by name, and the folder's times and inode from before it was listed.

    skill: the file that makes the folder a skill, "" for none. twins: whether other names differ from it only in case.
    files: the other regular files. folders: those to descend into. links: symbolic links of any kind.
    oddities: (kind of problem, name, whether a mere file) of entries that can be none of these.
    """

    mtime_ns: int
    ctime_ns: int
    inode: int
    skill: str
    twins: bool
    files: tuple[str, ...]
    folders: tuple[str, ...]
    links: tuple[str, ...]
    oddities: tuple[tuple[str, str, bool], ...]


class _Stored(msgspec.Struct, array_like=True):
    version: int
    root: str
    folders: dict[str, Listing]


class WalkCache:
    """The listings of one source's folders by relative path that can be relied on while a folder's times stay equal."""

    __slots__ = ("listings", "root")

    def __init__(self, root: str, listings: dict[str, Listing]) -> None:
        self.root = root
        self.listings = listings

    @classmethod
    def of(cls, root: str, scanned_ns: int, listings: dict[str, Listing]) -> WalkCache:
        """The cache after a scan that began at `scanned_ns`: folders that changed shortly before or since stay out."""
        clean = scanned_ns - RACY_NS
        kept = {
            folder: listing
            for folder, listing in listings.items()
            if listing.mtime_ns < clean and listing.ctime_ns < clean
        }
        return cls(root, kept)

    def dump(self) -> bytes:
        """The cache as bytes for `load`."""
        return msgspec.msgpack.encode(_Stored(_VERSION, self.root, self.listings))

    @classmethod
    def load(cls, data: bytes) -> WalkCache | None:
        """The cache that `dump` wrote, or None when `data` is anything else: the next walk then lists every folder."""
        try:
            with collector_paused():
                stored = msgspec.msgpack.decode(data, type=_Stored)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if stored.version != _VERSION:
            return None
        return cls(stored.root, stored.folders)


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection meanwhile: it would go over thousands of growing objects again and again for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def list_folder(path: str, stat: os.stat_result) -> Listing:
    """Lists the folder at `path`; `stat` was taken before. Raises OSError."""
    skills: list[str] = []
    files: list[str] = []
    folders: list[str] = []
    links: list[str] = []
    oddities: list[tuple[str, str, bool]] = []
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            if not name.isascii() and not is_text(name):
                escaped = os.fsencode(name).decode("utf-8", "backslashreplace")
                oddities.append(("bad_name", escaped, not entry.is_dir(follow_symlinks=False)))
            elif entry.is_symlink():
                if name not in IGNORED:
                    links.append(name)
            elif entry.is_dir(follow_symlinks=False):
                if name not in IGNORED:
                    folders.append(name)
                    if is_skill_file(name):
                        oddities.append(("not_a_file", name, False))
            elif entry.is_file(follow_symlinks=False):
                (skills if is_skill_file(name) else files).append(name)
            elif is_skill_file(name):
                oddities.append(("not_a_file", name, False))
    return Listing(
        stat.st_mtime_ns,
        stat.st_ctime_ns,
        stat.st_ino,
        SKILL_FILE if SKILL_FILE in skills else min(skills, default=""),
        len(skills) > 1,
        tuple(sorted(files)),
        tuple(sorted(folders)),
        tuple(sorted(links)),
        tuple(sorted(oddities)),
    )


def is_skill_file(name: str) -> bool:
    """Whether `name` is SKILL.md in any case."""
    return len(name) == len(SKILL_FILE) and name.lower() == "skill.md"


def is_text(name: str) -> bool:
    """Whether a file name is text, and not bytes that no encoding explains."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
