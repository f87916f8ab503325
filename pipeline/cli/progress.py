"""Progress on a terminal: a bar a step with count and remaining time, gone when the work is done."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Bars:
    """A `pipeline.engine.report.Progress` on stderr. Nothing is imported or drawn before there is work."""

    def __init__(self) -> None:
        self._terminal = sys.stderr  # doit puts something else in its place while a task runs
        self._progress: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._totals: dict[str, int] = {}

    def begin(self, step: str, total: int) -> None:
        """More work for a step; its bar grows."""
        if not total:
            return
        progress = self._started()
        self._totals[step] = self._totals.get(step, 0) + total
        if step in self._tasks:
            progress.update(self._tasks[step], total=self._totals[step])
        else:
            self._tasks[step] = progress.add_task(step, total=total)

    def advance(self, step: str, count: int = 1) -> None:
        """Some of it is done."""
        if self._progress is not None and step in self._tasks:
            self._progress.advance(self._tasks[step], count)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            self._tasks.clear()
            self._totals.clear()

    def _started(self) -> RichProgress:
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            console = Console(file=self._terminal)
            self._progress = Progress(
                *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._progress.start()
        return self._progress
