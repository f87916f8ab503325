"""Locks of the operating system on files: for the right to change a lane, and to show that a staging folder is in use.

A killed process leaves no lock behind: the system releases it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serve.errors import ExitCode
from serve.projection.errors import ProjectionError

LANE_TIMEOUT = 20.0  # seconds; whoever holds a lane's lock needs it for milliseconds
_POLL = 0.004
_STAGE_LOCK = ".lock"

if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def locked(path: Path, timeout: float = LANE_TIMEOUT) -> Iterator[None]:
    """Hold the lock of the file `path` for the length of a block. Raises ProjectionError when it is not to be had in time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    try:
        deadline = time.monotonic() + timeout
        while not _try(descriptor):
            if time.monotonic() >= deadline:
                raise ProjectionError(
                    f"another process has held the projection lane for {timeout:.0f} s",
                    where=str(path),
                    next_step="try again; if it stays, look for a `retrieval projected` or a server that hangs",
                    code=ExitCode.LOCKED,
                )
            time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def stage(staging: Path) -> Iterator[Path]:
    """A new empty folder below `staging` for the length of a block. Folders that killed processes left are removed first."""
    staging.mkdir(parents=True, exist_ok=True)
    sweep(staging)
    descriptor, folder = _claim(staging)
    try:
        folder.mkdir()
        yield folder
    finally:
        remove_tree(folder)
        folder.with_name(folder.name + _STAGE_LOCK).unlink(missing_ok=True)
        os.close(descriptor)


def stale(staging: Path) -> list[Path]:
    """The staging folders that no living process uses."""
    found = []
    for folder in _folders(staging):
        if not folder.with_name(folder.name + _STAGE_LOCK).exists():
            found.append(folder)  # a living process makes its lock first and removes it last
            continue
        descriptor = _take(folder)
        if descriptor is not None:
            os.close(descriptor)
            found.append(folder)
    return found


def sweep(staging: Path) -> list[Path]:
    """Remove the staging folders that no living process uses; returns them. May be called by many at once.

    One that the system refuses to remove stays, and is in nobody's way.
    """
    removed = []
    for folder in _folders(staging):
        descriptor = _take(folder)
        if descriptor is None:
            continue
        try:
            remove_tree(folder)
            folder.with_name(folder.name + _STAGE_LOCK).unlink(missing_ok=True)
            removed.append(folder)
        except OSError:
            continue
        finally:
            os.close(descriptor)
    return removed


def remove_tree(folder: Path) -> None:
    """Remove a folder and all below it, also where rights to write were taken away. A folder that is not there is fine."""
    if folder.is_symlink():
        folder.unlink()
        return

    def open_up(_function: object, path: str, error: BaseException) -> None:
        if isinstance(error, FileNotFoundError):
            return
        for place in (os.path.dirname(path), path):
            if not os.path.islink(place):
                os.chmod(place, 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    if sys.version_info >= (3, 12):
        shutil.rmtree(folder, onexc=open_up)
    else:
        shutil.rmtree(folder, onerror=lambda function, path, info: open_up(function, path, info[1]))


def _folders(staging: Path) -> list[Path]:
    try:
        names = {name.removesuffix(_STAGE_LOCK) for name in os.listdir(staging)}
    except FileNotFoundError:
        return []
    return [staging / name for name in sorted(names)]


def _claim(staging: Path) -> tuple[int, Path]:
    """A locked lock file of a new name, and the folder that goes with it, which is not there yet."""
    while True:
        folder = staging / f"{os.getpid()}-{secrets.token_hex(6)}"
        descriptor = _take(folder, create=True)
        if descriptor is not None:
            return descriptor, folder


def _take(folder: Path, *, create: bool = False) -> int | None:
    """The lock of a staging folder, or None when somebody has it."""
    path = folder.with_name(folder.name + _STAGE_LOCK)
    flags = os.O_RDWR | os.O_CREAT | (os.O_EXCL if create else 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags, 0o644)
    if _try(descriptor):
        # Whoever sweeps removes the file while holding its lock: a lock on a removed file protects nothing.
        try:
            if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except FileNotFoundError:
            pass  # removed in between, so the folder is being dealt with
    os.close(descriptor)
    return None
