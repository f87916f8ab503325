"""One started and checked scout that waits for the next choice, so that the choice need not wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock, Thread, Timer

from serve.selection import omp_setup
from serve.selection.limits import ChoiceError, Limits
from serve.selection.omp_process import OmpProcess
from serve.settings import ScoutSettings

START_SECONDS = 60.0  # a busy machine takes some five
IDLE_SECONDS = 1_800.0  # it holds some 250 MB; whoever asks so seldom can wait two seconds


class _Start:
    """One process on its way. Whoever holds it ends the process or uses it, once."""

    def __init__(self) -> None:
        self.done = Event()
        self.abandoned = Event()
        self.process: OmpProcess | None = None
        self.thread: Thread | None = None
        self.timer: Timer | None = None


class Standby:
    """Keeps at most one process ready. A process that was taken is never given a second time.

    closed: ends a start that is under way. end: ends a process that will not be used. idle: seconds that a process may
    stand by; after them the next choice starts its own.
    """

    def __init__(
        self, settings: ScoutSettings, closed: Event, end: Callable[[OmpProcess], None], idle: float = IDLE_SECONDS
    ) -> None:
        self._settings = settings
        self._idle = idle
        self._closed = closed
        self._end = end
        self._lock = Lock()
        self._next: _Start | None = None

    def refill(self) -> None:
        """Start a process in the background unless one is ready or on its way."""
        with self._lock:
            if self._closed.is_set() or (self._next is not None and self._usable(self._next)):
                return
            old, self._next = self._next, _Start()
            thread = Thread(target=self._start, args=(self._next,), name="retrieval-scout-start", daemon=True)
            self._next.thread = thread
            thread.start()
        self._abandon(old)

    def take(self, limits: Limits) -> OmpProcess | None:
        """The process that stands by, waited for while it starts; None when there is none that can be used."""
        with self._lock:
            start, self._next = self._next, None
        if start is None:
            return None
        _stop_timer(start)
        try:
            while not start.done.wait(0.01):
                limits.check()
        except ChoiceError:
            self._abandon(start)
            raise
        if not self._usable(start):
            self._abandon(start)
            return None
        return start.process

    def close(self) -> None:
        """End the process that stands by, or its start. `closed` must be set before."""
        with self._lock:
            start, self._next = self._next, None
        self._abandon(start)
        if start is not None and start.thread is not None:
            start.thread.join()

    def _usable(self, start: _Start) -> bool:
        if not start.done.is_set():
            return True
        process = start.process
        return process is not None and process.alive and process.stamp == omp_setup.stamp(self._settings)

    def _abandon(self, start: _Start | None) -> None:
        if start is None:
            return
        _stop_timer(start)
        with self._lock:
            start.abandoned.set()
            process, start.process = start.process, None
        if process is not None:
            self._end(process)

    def _expire(self, start: _Start) -> None:
        with self._lock:
            if self._next is not start:
                return
            self._next = None
        self._abandon(start)

    def _start(self, start: _Start) -> None:
        """Why a start fails is not said here: the choice that finds nothing standing by starts its own and says it."""
        stops = ((self._closed, "the selector was closed"), (start.abandoned, "it is not needed any more"))
        try:
            process = OmpProcess(self._settings)
            try:
                process.prepare(Limits(time.monotonic() + START_SECONDS, *stops))
            except ChoiceError:
                self._end(process)
                return
            with self._lock:
                if not (start.abandoned.is_set() or self._closed.is_set()):
                    start.process = process
                    if self._next is start:
                        start.timer = Timer(self._idle, self._expire, (start,))
                        start.timer.daemon = True
                        start.timer.start()
                    return
            self._end(process)
        except ChoiceError:
            return
        finally:
            start.done.set()


def _stop_timer(start: _Start) -> None:
    if start.timer is not None:
        start.timer.cancel()
