"""Where projections lie, and the marker that says whose a folder in a lane is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
from blake3 import blake3

MARKER = ".retrieval.json"
MARKER_VERSION = 1
MARKER_BYTES = 32 << 20  # the most that is read of one: it names every file of a package
SKILL_FILE = "SKILL.md"
PRINT = 32  # characters of a digest over the stats of files
STAGING = ".staging"
KEPT = "kept"
MANIFEST = "manifest.sqlite3"


class CopiedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of a copy as it was written. path: relative to the folder, "/"-separated. digest: blake3, 32 hex digits."""

    path: str
    size: int
    mode: int
    digest: str


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """`.retrieval.json` in a projected folder.

    id: of the skill. name: under which the harness lists the copy. original: the folder that was copied. package: digest of
    what was copied, before the name in SKILL.md was changed if it was. indexed: the package's digest in the index then.
    files: all that was written beside this marker. skipped: what was left out, each with its reason. projected_at: seconds
    since the epoch.
    """

    version: int
    id: str
    harness: str
    name: str
    original: str
    package: str
    indexed: str
    files: tuple[CopiedFile, ...]
    skipped: tuple[str, ...]
    projected_at: float


class Layout:
    """The folders of one data directory's projections."""

    def __init__(self, data_dir: Path) -> None:
        self.root = data_dir / "projections"
        self.staging = self.root / STAGING
        self.manifest = self.root / MANIFEST
        self.kept = self.root / KEPT

    def lane(self, harness: str) -> Path:
        """The folder that a harness is told to look into, one folder a skill."""
        return self.root / harness / "skills"

    def lock(self, harness: str) -> Path:
        """The file that is locked by whoever changes a lane."""
        return self.root / harness / ".lock"

    def harnesses(self) -> list[str]:
        """The harnesses that have a lane here."""
        try:
            with os.scandir(self.root) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        return sorted(name for name in names if name not in {STAGING, KEPT} and self.lane(name).is_dir())


def package_digest(files: tuple[CopiedFile, ...] | list[CopiedFile]) -> str:
    """blake3 (32 hex digits) over names, modes and contents of a package's files."""
    hasher = blake3()
    for file in sorted(files, key=lambda file: file.path):
        name = file.path.encode("utf-8", "surrogateescape")
        hasher.update(len(name).to_bytes(4, "little") + name + file.mode.to_bytes(4, "little") + file.digest.encode())
    return hasher.hexdigest(length=16)


def read_marker(folder: Path) -> Marker | None:
    """The marker of a folder, or None when it has none that can be relied on: links and pipes are none."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(folder / MARKER, flags)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = file.read(MARKER_BYTES + 1)
    if len(data) > MARKER_BYTES:
        return None
    try:
        marker = msgspec.json.decode(data, type=Marker)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return marker if marker.version == MARKER_VERSION else None


def marker_bytes(marker: Marker) -> bytes:
    """The marker as it is written: JSON that a person can read."""
    return msgspec.json.format(msgspec.json.encode(marker), indent=1) + b"\n"


def copy_print(folder: Path, paths: list[str] | tuple[str, ...]) -> str:
    """Two digests, one after the other, over size, times and inode of a copy's files and of its marker.

    "" when one of these is missing or no regular file any more. Equal digests mean that nothing was written to these files
    since. Files beside them do not count.
    """
    files, marker = files_print(folder, paths), files_print(folder, [MARKER])
    return files + marker if files and marker else ""


def same_files(copied: str, folder: Path, paths: list[str] | tuple[str, ...]) -> bool:
    """Whether nothing was written to a copy's files since `copy_print` gave `copied`, whatever became of the marker."""
    return copied[:PRINT] == files_print(folder, paths) != ""


def files_print(folder: Path, paths: list[str] | tuple[str, ...]) -> str:
    """A digest of PRINT characters over size, times and inode of files, "" when one is missing or no regular file.

    "" as well for a link in the folder's place.
    """
    if os.path.islink(folder):
        return ""
    hasher = blake3()
    base = f"{folder}{os.sep}"
    try:
        for path in paths:
            found = os.lstat(base + path)
            if not stat.S_ISREG(found.st_mode):
                return ""
            key = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_mode)
            hasher.update(repr(key).encode())
    except OSError:
        return ""
    return hasher.hexdigest(length=PRINT // 2)
