"""How commands speak: JSON or text on stdout, errors on stderr, colours and progress only where a person looks at them."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from serve.errors import OperatorError

# C0 and C1 controls, and the marks that reorder text: a foreign description could move the cursor, rename the window or
# show its words backwards.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def plain(text: object) -> str:
    """Foreign text made safe to print on one line: control sequences become spaces, lone surrogates a mark."""
    flat = _CONTROL.sub(" ", str(text))
    return flat.encode("utf-8", "replace").decode("utf-8")


def styled(text: str, style: str) -> str:
    """Text in a style on a colour terminal, else as it is."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def say(text: str = "") -> None:
    """One line on stdout."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def emit(value: Any) -> None:
    """A value as JSON on stdout: indented, keys in their order, escapes only where needed."""
    say(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def emit_line(value: Any) -> None:
    """A value as one JSON line on stdout, flushed at once."""
    say(json.dumps(value, ensure_ascii=False, default=str))
    sys.stdout.flush()


def complain(error: OperatorError, *, as_json: bool) -> None:
    """An error the one way: three lines on stderr, or an object on stdout with --json."""
    if as_json:
        emit(error.as_dict())
        return
    head, *rest = str(error).splitlines()
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    lines = [f"\x1b[31m{head}\x1b[0m" if colour else head, *rest]
    sys.stderr.write("\n".join(_CONTROL_BUT_ESC.sub(" ", line) for line in lines) + "\n")


_CONTROL_BUT_ESC = re.compile("[\x00-\x1a\x1c-\x1f\x7f-\x9f]")


def table(rows: Iterable[Sequence[object]], header: Sequence[str]) -> None:
    """Columns as wide as their widest cell; numbers to the right."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]
    numeric = [bool(cells) and all(row[i].isdigit() for row in cells) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        parts = [cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, numeric, strict=True)]
        return "  ".join(parts).rstrip()

    say(styled(line(header), "dim"))
    for row in cells:
        say(line(row))


class Bars:
    """Progress on a terminal: a bar a step with count, rate and remaining time. Made when work begins, not before."""

    def __init__(self) -> None:
        self._progress: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._totals: dict[str, int] = {}

    def begin(self, step: str, total: int) -> None:
        """More work for a step; its bar grows."""
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

    def _started(self) -> RichProgress:
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.start()
        return self._progress


def age(seconds: float) -> str:
    """A length of time in its largest fitting unit."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"
