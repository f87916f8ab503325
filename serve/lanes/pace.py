"""When a helper that may be slow is asked again: it is left alone while it works on what came too late, and longer each time."""

from __future__ import annotations

FIRST_REST = 10.0  # seconds
LONGEST_REST = 3600.0
SHARE = 20  # a helper that is late rests this many times as long as it worked


class Pace:
    """The record of one kind of question. Times are seconds of one clock, given by the caller; not safe for threads by itself."""

    def __init__(self) -> None:
        self.overdue = 0  # questions that nobody waits for any more and that are not answered yet
        self.late = 0  # late answers since the last that came in time
        self.took = 0.0  # by the latest answer
        self._rests_until = 0.0

    def rest(self, now: float) -> float:
        """How long it is still left alone because its last answer was late; 0 when it may be asked."""
        return max(0.0, self._rests_until - now)

    def given_up(self) -> None:
        """Nobody waits for a question any more."""
        self.overdue += 1

    def answered(self, now: float, took: float, *, in_time: bool) -> None:
        """An answer came, after `took` seconds."""
        self.took = took
        if in_time:
            self.late = 0
            return
        self.overdue -= 1
        self.late += 1
        doubled = max(FIRST_REST, SHARE * took) * 2 ** min(self.late - 1, 16)
        self._rests_until = now + min(doubled, LONGEST_REST)

    def forget(self) -> None:
        """The helper was started anew: what it did before says nothing about what it owes."""
        self.overdue = 0
