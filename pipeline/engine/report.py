"""What a run did: per step how many items were computed, reused, written and removed, and how long it took."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.model import Problem


@dataclass
class StepCount:
    """Counts of one step in one run. executed + reused = items looked at; written and removed: files or rows changed."""

    executed: int = 0
    reused: int = 0
    written: int = 0
    removed: int = 0
    seconds: float = 0.0
    tasks_run: int = 0
    tasks_current: int = 0


class Progress(Protocol):
    """Where long work is shown. `total` may grow while a step works."""

    def begin(self, step: str, total: int) -> None: ...

    def advance(self, step: str, count: int = 1) -> None: ...

    def close(self) -> None: ...


class Silent:
    """Progress for everything that is not a terminal."""

    def begin(self, step: str, total: int) -> None:
        """Show nothing."""

    def advance(self, step: str, count: int = 1) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Show nothing."""


@dataclass
class Report:
    """The account of one run; `as_dict` is what `retrieval build --json` prints and what is kept as the last run."""

    run: str
    started: float = field(default_factory=time.time)
    steps: dict[str, StepCount] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    generation: str = ""
    published: bool = False

    def step(self, name: str) -> StepCount:
        """The counts of a step, begun when first asked for."""
        return self.steps.setdefault(name, StepCount())

    @contextmanager
    def timing(self, name: str) -> Iterator[StepCount]:
        """Add the block's wall time to a step."""
        count = self.step(name)
        begun = time.perf_counter()
        try:
            yield count
        finally:
            count.seconds += time.perf_counter() - begun

    def as_dict(self) -> dict[str, object]:
        """Plain data, seconds rounded to milliseconds."""
        steps = {name: asdict(count) for name, count in self.steps.items()}
        for count in steps.values():
            count["seconds"] = round(count["seconds"], 3)
        return {
            "run": self.run,
            "started": self.started,
            "seconds": round(time.time() - self.started, 3),
            "steps": steps,
            "problems": len(self.problems),
            "notes": self.notes,
            "generation": self.generation,
            "published": self.published,
        }
