"""Sleeping until something happens: a signal to this process, or, on Linux, an event at a file that is watched.

The watching library looks for events many times a second, which adds up over idle weeks. The kernel can instead send SIGIO
when an inotify descriptor has something to read; elsewhere short sleeps have to do.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_DESCRIPTORS = "/proc/self/fd"


class Alarm:
    """For the main thread only. stop: a stop was asked for by SIGTERM or SIGINT; a second SIGINT interrupts at once."""

    def __init__(self) -> None:
        self.stop = False
        self._read, self._write = socket.socketpair()
        self._before: list[tuple[int, object]] = []
        self._wakeup = -1

    def __enter__(self) -> Self:
        for end in (self._read, self._write):
            end.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        handlers: dict[signal.Signals, Callable[[int, object], None]] = {
            signal.SIGTERM: self._stop,
            signal.SIGINT: self._stop,
        }
        if hasattr(signal, "SIGIO"):
            handlers[signal.SIGIO] = _nothing
        self._before = [(number, signal.signal(number, handler)) for number, handler in handlers.items()]
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal itself gave
        signal.set_wakeup_fd(self._wakeup)
        self._read.close()
        self._write.close()

    def _stop(self, number: int, _frame: object) -> None:
        if self.stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.stop = True

    def sleep(self, seconds: float) -> bool:
        """Sleep until a signal comes, at most some seconds. Returns whether one came."""
        if self.stop or not select.select([self._read], [], [], max(0.0, seconds))[0]:
            return self.stop
        self._drain()
        return True

    def _drain(self) -> None:
        try:
            while self._read.recv(4096):
                pass
        except BlockingIOError:
            return


def _nothing(_number: int, _frame: object) -> None:
    """The signal has done its work: it wrote to the descriptor that `sleep` looks at."""


def descriptors() -> frozenset[int]:
    """This process's inotify descriptors; none where they cannot be found or used."""
    if not sys.platform.startswith("linux"):
        return frozenset()
    found = set()
    try:
        for name in os.listdir(_DESCRIPTORS):
            if _leads_to(name).endswith("inotify"):
                found.add(int(name))
    except OSError:
        return frozenset()
    return frozenset(found)


def _leads_to(name: str) -> str:
    try:
        return os.readlink(f"{_DESCRIPTORS}/{name}")
    except OSError:
        return ""  # closed meanwhile, such as the one this listing was read by


@contextmanager
def armed(watched: Sequence[int]) -> Iterator[None]:
    """Have the kernel send SIGIO for events at these descriptors during the block."""
    import fcntl

    for descriptor in watched:
        fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
    try:
        yield
    finally:
        for descriptor in watched:
            fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) & ~os.O_ASYNC)
