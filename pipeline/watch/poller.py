"""Looks at folders and single files again and again, as often as costs little beside everything else."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from pipeline.watch.pulse import Pulse, pulse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.watch.places import Places, Root

SHARE = 20  # a look that takes a second comes every twenty at most


class Poller:
    """interval: seconds between looks; it grows where a look takes long. decisions: whether `places.points` are looked at too."""

    def __init__(self, roots: Sequence[Root], places: Places, interval: float, *, decisions: bool) -> None:
        self._roots = roots
        self._places = places
        self._decisions = decisions
        self._wanted = interval
        self.interval = interval
        self._known: dict[str, Pulse] = {}
        self._points: frozenset[tuple[object, ...]] = frozenset()
        self._due = 0.0
        if roots or decisions:
            self.poll()

    def until(self) -> float:
        """Seconds until the next look is due; a very long time when nothing is to be looked at."""
        return self._due - time.monotonic() if self._roots or self._decisions else float(1 << 20)

    @property
    def settled(self) -> bool:
        """Whether nothing had changed so shortly before the last look that it might change again without a trace."""
        return all(seen.settled for seen in self._known.values())

    def poll(self) -> tuple[set[str], bool]:
        """The sources in which something differs from the last look, and whether a point does."""
        begun = time.monotonic()
        changed = set()
        for root in self._roots:
            seen = pulse(root.path, self._places.data)
            known = self._known.get(root.source)
            # What had changed a moment before may have changed again without a trace: it counts once more when that is over.
            if known is None or known.digest != seen.digest or (seen.settled and not known.settled):
                changed.add(root.source)
            self._known[root.source] = seen
        points = self._look_at_points() if self._decisions else frozenset()
        differ, self._points = points != self._points, points
        ended = time.monotonic()
        self.interval = max(self._wanted, round(SHARE * (ended - begun), 1))
        self._due = ended + self.interval
        return changed, differ

    def _look_at_points(self) -> frozenset[tuple[object, ...]]:
        seen = set[tuple[object, ...]]()
        for path in self._places.points:
            try:
                stat = os.stat(path)
            except OSError as error:
                seen.add((path, error.errno))
                continue
            folder = os.path.isdir(path)  # what happens inside one is told by its own points
            seen.add((path, stat.st_ino, *(() if folder else (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))))
        for path in self._places.folders:
            try:
                seen.add((path, *sorted(os.listdir(path))))
            except OSError as error:
                seen.add((path, error.errno))
        return frozenset(seen)
