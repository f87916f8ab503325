"""What is to be built, and when: at once after a save, later while much is going on, and once more when it is quiet again."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.watch.eyes import Hints

MANY = 50  # events from which on more are awaited
QUIET = 0.5  # seconds without events that end such a time
PATIENCE = 10.0  # seconds after which it is built all the same
TRAILING = 2.2  # seconds without events; a file's time can be relied on when it is two seconds old
FIRST_RETRY, LAST_RETRY = 2.0, 300.0  # seconds


class Pending:
    """Times are seconds of `clock`. every: between checks of everything.

    sources: to be scanned; everything: all of them; look_again: configuration and folders first; renew: watch anew first.
    """

    def __init__(self, every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._every = every
        self.sources: set[str] = set()
        self.everything = True
        self.look_again = False
        self.renew = False
        self._begun = self._last = self._due = clock()
        self._again: set[str] = set()
        self._again_all = self._again_look = self._again_renew = False
        self._again_at = float("inf")
        self._check_at = clock() + every
        self._retry = 0.0

    def __bool__(self) -> bool:
        """Whether anything waits to be built, a repetition aside."""
        return bool(self.sources) or self.everything or self.look_again

    @property
    def settled(self) -> bool:
        """Whether nothing waits to be built, a repetition included."""
        return not self and self._again_at == float("inf")

    def hint(self, hints: Hints) -> None:
        """Something has changed."""
        now = self._clock()
        if not self:
            self._begun = now
        self._last = now
        self.sources |= hints.sources
        self.look_again |= hints.look_again
        self._again |= hints.sources
        self._again_all |= hints.doubtful
        self._again_look |= hints.look_again or hints.renew
        self._again_renew |= hints.renew
        self._again_at = now + TRAILING
        busy = hints.events >= MANY or now - self._begun > QUIET
        self._due = min(self._begun + PATIENCE, now + QUIET) if busy else now

    def hold(self, locks: Iterable[str]) -> None:
        """Wait a little longer while one of these files exists, with which Git says that it is at work."""
        now = self._clock()
        if self and self._due <= now < self._begun + PATIENCE and any(map(_fresh, locks)):
            self._due = now + 0.1

    def until(self) -> float:
        """Seconds until something is due, 0.0 for now."""
        moments = [self._again_at, self._check_at, *([self._due] if self else [])]
        return max(0.0, min(moments) - self._clock())

    def ripen(self) -> bool:
        """Turn what is due by time into what is to be built. Returns whether a build is due now."""
        now = self._clock()
        if now >= self._again_at:
            self.sources |= self._again
            self.everything |= self._again_all
            self.renew |= self._again_renew
            self.look_again |= self._again_look
            self._again, self._again_at = set(), float("inf")
            self._again_all = self._again_look = self._again_renew = False
        if now >= self._check_at:
            self.everything = self.look_again = True
            self._check_at = now + self._every
        return bool(self) and now >= self._due

    def done(self) -> None:
        """What was to be built has been built."""
        self.sources, self.everything, self.look_again, self.renew = set(), False, False, False
        self._retry = 0.0

    def failed(self) -> float:
        """It could not be built: it is tried again, more and more rarely. Returns in how many seconds."""
        self._retry = min(max(FIRST_RETRY, self._retry * 2), LAST_RETRY)
        self._due = self._clock() + self._retry
        return self._retry


def _fresh(path: str) -> bool:
    """Whether a file was made a short while ago; an older lock was left behind."""
    try:
        return abs(time.time() - os.stat(path).st_mtime) < PATIENCE
    except OSError:
        return False
