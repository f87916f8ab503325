"""Copying a package into a staging folder: bounded, never through a link, and verified afterwards."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from blake3 import blake3

from serve.contract import Record
from serve.projection import origin
from serve.projection.errors import ProjectionError
from serve.projection.layout import SKILL_FILE, CopiedFile
from serve.projection.package import Found, Package, shown

_BLOCK = 1 << 20
_TRIES = 3
_SYNCERS = 12
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | _NO_LINK
_AT = os.open in os.supports_dir_fd


class Copier:
    """Copies one package into `target`, an empty folder.

    files: what was copied. skipped: what was not, each with its reason. Both grow.
    """

    def __init__(self, package: Package, record: Record, target: Path, limit: int) -> None:
        self.package = package
        self.record = record
        self.target = target
        self.left = limit
        self.limit = limit
        self.files: list[CopiedFile] = []
        self.skipped = list(package.skipped)
        self._folders: list[tuple[str, int]] = []

    def run(self) -> None:
        """Copy everything. Raises ProjectionError for a package above the limit or without its SKILL.md, OSError on writing."""
        if sum(file.size for file in self.package.files) > self.limit:
            raise self._too_large()
        root = os.open(self.package.root, os.O_RDONLY) if _AT else -1
        try:
            origin.check(self.record, root)
            self._folders = [("", root)]
            for file in self.package.files:
                self._copy(file)
        finally:
            for _name, descriptor in reversed(self._folders):
                if descriptor >= 0:
                    os.close(descriptor)
            self._folders = []
        if not _AT:
            origin.check(self.record)  # without descriptors of folders all that can be done is to look before and after

    def _copy(self, file: Found) -> None:
        """Copy one file, or note why not; what changes meanwhile is read again, at most _TRIES times."""
        for _attempt in range(_TRIES):
            try:
                descriptor = self._open(file)
            except OSError as error:
                self._leave_out(file, _reason(error))
                return
            with open(descriptor, "rb", buffering=0) as source:
                before = os.fstat(descriptor)
                if not stat.S_ISREG(before.st_mode):
                    self._leave_out(file, "no regular file any more")
                    return
                copied = self._write(file, source.fileno(), before)
                if copied is None:
                    return
                after = os.fstat(descriptor)
            if (before.st_size, before.st_mtime_ns) == (
                after.st_size,
                after.st_mtime_ns,
            ) and copied.size == after.st_size:
                self._check_linked(file, copied)
                self.files.append(copied)
                self.left -= copied.size
                return
        self._leave_out(file, "kept changing while it was copied")

    def _open(self, file: Found) -> int:
        """The file, opened without following a link on the way from the package's folder. SKILL.md itself may be one."""
        no_link = 0 if file.path == SKILL_FILE else _NO_LINK
        if not _AT:
            return os.open(f"{self.package.root}/{file.source}", _READ | no_link)
        *folders, name = file.source.split("/")
        while len(self._folders) - 1 > len(folders) or self._way() != folders[: len(self._folders) - 1]:
            os.close(self._folders.pop()[1])
        for folder in folders[len(self._folders) - 1 :]:
            flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
            self._folders.append((folder, os.open(folder, flags, dir_fd=self._folders[-1][1])))
        return os.open(name, _READ | no_link, dir_fd=self._folders[-1][1])

    def _way(self) -> list[str]:
        return [name for name, _descriptor in self._folders[1:]]

    def _write(self, file: Found, source: int, before: os.stat_result) -> CopiedFile | None:
        """The bytes that were read, written; None when reading failed and that was noted."""
        place = self.target / file.path
        mode = kept_mode(before.st_mode)
        place.parent.mkdir(parents=True, exist_ok=True)
        hasher = blake3()
        size = 0
        target = os.open(place, _WRITE, 0o600)
        try:
            while True:
                try:
                    block = os.read(source, _BLOCK)
                except OSError as error:
                    self._leave_out(file, _reason(error))
                    return None
                if not block:
                    break
                size += len(block)
                if size > self.left:
                    raise self._too_large()
                hasher.update(block)
                _write_all(target, block)
        finally:
            os.close(target)
        os.chmod(place, mode)
        return CopiedFile(file.path, size, mode, hasher.hexdigest(length=16))

    def _check_linked(self, file: Found, copied: CopiedFile) -> None:
        """A SKILL.md that is a link was judged when the index was built; where it leads now must hold the same text."""
        path = f"{self.package.root}/{file.source}"
        if file.path != SKILL_FILE or not os.path.islink(path):
            return
        if not self.record.digest.startswith(copied.digest):
            raise ProjectionError(
                "the SKILL.md is a link, and its target is not what was indexed",
                where=path,
                next_step="run `retrieval build`",
            )

    def _leave_out(self, file: Found, reason: str) -> None:
        if file.path == SKILL_FILE:
            where = f"{self.package.root}/{file.source}"
            raise ProjectionError(f"the SKILL.md cannot be copied: {reason}", where=where, next_step="look at the file")
        (self.target / file.path).unlink(missing_ok=True)
        self.skipped.append(f"{shown(file.path)}: {reason}")

    def _too_large(self) -> ProjectionError:
        return ProjectionError(
            f"the package is larger than {self.limit} bytes",
            where=self.package.root,
            next_step="raise RETRIEVAL_PROJECT_MAX_BYTES, or use the files where they are",
        )


def kept_mode(mode: int) -> int:
    """A file's rights without setuid, setgid, sticky and writing by all; its owner can always read and replace it."""
    return (stat.S_IMODE(mode) & 0o775) | 0o600


def verify(folder: Path, files: Sequence[CopiedFile]) -> None:
    """Read a copy again. Raises ProjectionError when a file does not hold what was written to it."""
    for file in files:
        place = folder / file.path
        data = _digest(place)
        if data != (file.size, file.digest):
            raise ProjectionError(
                "a copied file does not hold what was written",
                where=str(place),
                next_step="check the disk, and try again",
            )


def holds(folder: Path, files: Sequence[CopiedFile]) -> bool:
    """Whether a copy still holds what was written."""
    try:
        verify(folder, files)
    except (ProjectionError, OSError):
        return False
    return True


def sync(folder: Path, files: Sequence[str]) -> None:
    """Have the system put a copy on disk: all files at once, since one after the other would wait for the disk each time."""
    folders = {str(folder / parent) for path in files for parent in PurePosixPath(path).parents}
    places = [str(folder / path) for path in files] + ([] if os.name == "nt" else sorted(folders))
    with ThreadPoolExecutor(min(_SYNCERS, len(places))) as threads:
        list(threads.map(_sync, places))


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(place: Path) -> tuple[int, str]:
    descriptor = os.open(place, _READ | _NO_LINK)
    hasher = blake3()
    with open(descriptor, "rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            hasher.update(block)
        return os.fstat(descriptor).st_size, hasher.hexdigest(length=16)


def _write_all(target: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(target, view) :]


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "vanished while it was copied"
    return f"cannot be read: {(error.strerror or str(error)).lower()}"
