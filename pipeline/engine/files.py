"""The one place that writes files: atomic or absent, and not at all when nothing would change."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from blake3 import blake3

from pipeline.engine import faults

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PART = ".part-"


def digest(data: bytes) -> str:
    """blake3 of `data` as 32 hex digits (128 bits: plenty for telling contents apart, half the manifest size)."""
    return blake3(data).hexdigest(length=16)


def digest_file(path: Path | str) -> str:
    """blake3 of a file's bytes, read in blocks so that a large bundled file costs no memory."""
    hasher = blake3()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            hasher.update(block)
    return hasher.hexdigest(length=16)


class Digests:
    """Digests of files, each hashed once per run however many tasks ask: a file that was replaced has another inode or time."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int, int, int], str] = {}

    def of(self, path: Path | str) -> str:
        """The digest of a file's bytes. Raises OSError."""
        stat = os.stat(path)
        signature = (str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        if signature not in self._known:
            self._known[signature] = digest_file(path)
        return self._known[signature]


def key(*parts: str | bytes) -> str:
    """One digest over several parts, with lengths, so that no two different lists of parts collide."""
    hasher = blake3()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest(length=16)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A sibling path to write to; it takes the place of `path` in one rename when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _part_of(path)
    try:
        yield part
        faults.reach("file:written")
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write(path: Path, data: bytes) -> bool:
    """Make `path` hold `data`. Returns False, touching nothing, when it does already."""
    try:
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            return False
    except FileNotFoundError:
        pass  # the ordinary first time: there is nothing to compare with
    part = _part_of(path)
    try:
        _put(part, data)
        faults.reach("file:written")
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return True


def _put(path: Path, data: bytes) -> None:
    """Write a new file; its folder is made only when it turns out to be missing: pages come by the thousand."""
    try:
        path.write_bytes(data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _part_of(path: Path) -> Path:
    return path.with_name(f"{PART}{secrets.token_hex(4)}-{path.name}"[:200])


def sync(path: Path) -> None:
    """Have the file system put a file or folder on disk now (a folder's entries where the system supports it)."""
    if os.name == "nt" and path.is_dir():
        return  # Windows offers no handle on a folder that could be flushed
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep_parts(folder: Path) -> int:
    """Remove what killed writers left behind below `folder`, unfinished folders included; returns how many went.

    Only under the writer lock.
    """
    parts = sorted(folder.rglob(f"{PART}*"))
    for part in parts:
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part)
        else:
            part.unlink(missing_ok=True)
    return len(parts)
