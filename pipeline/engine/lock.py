"""The single-writer lock of a data directory: held by one building process, released by the system when that process dies.

The file lock is the operating system's own (flock, or msvcrt on Windows), so a killed holder leaves nothing to clean up. The
`filelock` package does the same but costs 60 ms to import, a tenth of what a build with nothing to do may take.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import IO, TYPE_CHECKING

from pipeline.errors import LockedError

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _try(file: IO[str]) -> bool:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try(file: IO[str]) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class WriterLock:
    """The right to write in a data directory.

    path: the lock file; who holds it stands in `<path>.holder` as JSON (pid, command, since), written after locking.
    inherited: whether a holder before died without giving it back, so that unfinished files of its may lie about. Whoever has
    removed them sets it to False; until then a file without a name is left, for the next holder to know.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.holder_path = path.with_name(path.name + ".holder")
        self.inherited = False
        self._file: IO[str] | None = None

    @property
    def held(self) -> bool:
        """Whether this process holds it."""
        return self._file is not None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The open file that is the lock: a process that inherits it holds the lock too, until it ends."""
        return () if self._file is None else (self._file.fileno(),)

    def acquire(self, timeout: float) -> None:
        """Take the lock, waiting at most `timeout` seconds. Raises LockedError naming the holder."""
        if self._file is not None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115 - held until release or death
        deadline = time.monotonic() + timeout
        while not _try(file):
            if time.monotonic() >= deadline:
                file.close()
                raise LockedError(self.path, self.holder(), timeout)
            time.sleep(0.05)
        self._file = file
        self.inherited = self.holder_path.exists()
        holder = {"pid": os.getpid(), "command": " ".join(sys.argv)[:200], "since": time.time()}
        self.holder_path.write_text(json.dumps(holder), encoding="utf-8")

    def holder(self) -> dict[str, object]:
        """Who holds it, as far as is known: {} when nobody wrote a name."""
        try:
            value = json.loads(self.holder_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def release(self) -> None:
        """Give it back."""
        if self._file is not None:
            if self.inherited:
                self.holder_path.write_text("{}", encoding="utf-8")
            else:
                self.holder_path.unlink(missing_ok=True)
            self._file.close()
            self._file = None
