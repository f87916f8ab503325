"""One watcher for a data directory: who holds its lock. The system gives the lock back when the holder dies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipeline.engine.build import Paths
from pipeline.engine.lock import WriterLock
from pipeline.errors import LockedError, OperatorError
from serve.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.watch.alarm import Alarm

LOCK = "watcher.lock"
TURN = 0.5  # seconds between two attempts of a watcher that stands by


def elected(data: Path, wake: Alarm, *, standby: bool) -> WriterLock | None:
    """The lock, held. With standby it is waited for; None when a stop was asked for first.

    Raises OperatorError with exit code 5 when another watcher holds it, BuildError for somebody else's folder.
    """
    Paths(data).claim()
    lock = WriterLock(data / LOCK)
    while not wake.stop:
        try:
            lock.acquire(0.0)
        except LockedError as error:
            if not standby:
                raise _taken(lock, error) from error
            wake.sleep(TURN)
        else:
            lock.inherited = False  # only who writes the index leaves unfinished files
            return lock
    return None


def holds(lock: WriterLock) -> bool:
    """Whether the file that is locked is still the one that others would lock."""
    try:
        return os.path.samestat(os.stat(lock.path), os.fstat(lock.descriptors[0]))
    except FileNotFoundError:
        return False


def confirm(lock: WriterLock) -> None:
    """Hold the lock anew if its file was deleted, with the whole data directory perhaps: another one would be free to take it.

    Raises as `elected` does when another watcher was quicker.
    """
    if holds(lock):
        return
    Paths(lock.path.parent).claim()
    lock.release()
    try:
        lock.acquire(0.0)
    except LockedError as error:
        raise _taken(lock, error) from error
    lock.inherited = False


def _taken(lock: WriterLock, error: LockedError) -> OperatorError:
    pid = error.holder.get("pid")
    return OperatorError(
        f"a watcher of this data directory runs already: process {pid or 'unknown'}",
        where=str(lock.path),
        next_step="leave it to that one, stop it, or stand by with --standby",
        code=ExitCode.LOCKED,
    )
