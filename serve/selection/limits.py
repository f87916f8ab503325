"""When a choice must end: its deadline, its cancellation, the end of its selector. Everything that waits, waits here."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")

POLL = 0.05  # seconds between two looks at a cancellation


class ChoiceError(Exception):
    """No decision was made. Its text is the reason, a sentence without a full stop."""


class Limits:
    """One choice's deadline (`time.monotonic()`) and the events that end it before, each with the reason it stands for."""

    def __init__(self, deadline: float, *stops: tuple[Event, str]) -> None:
        self.deadline = deadline
        self.seconds = max(0.0, deadline - time.monotonic())
        self._stops = stops

    def left(self) -> float:
        """Seconds until the deadline, never under 0."""
        return max(0.0, self.deadline - time.monotonic())

    def check(self) -> None:
        """Raises ChoiceError when the choice must end now."""
        for event, reason in self._stops:
            if event.is_set():
                raise ChoiceError(reason)
        if self.left() <= 0:
            raise ChoiceError(f"no decision within {self.seconds:.3g} s")

    def pause(self, seconds: float) -> None:
        """Wait so long. Raises ChoiceError as soon as the choice must end."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(POLL, left))

    def take(self, queue: SimpleQueue[T]) -> T:
        """The next item of a queue. Raises ChoiceError as soon as the choice must end."""
        while True:
            self.check()
            try:
                return queue.get(timeout=min(POLL, self.left()))
            except Empty:
                continue

    def bounded(self, work: Callable[[], T], *, stop: Callable[[], None] | None = None) -> T:
        """What `work` returns or raises, from a thread of its own that nobody waits for longer than allowed.

        stop: ends the work when the choice must end first. Without it the work goes on unheard.
        """
        results: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

        def run() -> None:
            try:
                results.put((work(), None))
            except BaseException as error:  # noqa: BLE001 - it is raised again where the result is awaited
                results.put((None, error))

        Thread(target=run, name="retrieval-bounded", daemon=True).start()
        try:
            value, error = self.take(results)
        except ChoiceError:
            if stop is not None:
                stop()
            raise
        if error is not None:
            raise error
        return value  # type: ignore[return-value]  # one of both is always there
