"""How commands speak: JSON or text on stdout, errors on stderr, colours only where a person looks at them.

Everything that comes from skills, paths or a person's files passes through `plain` or `emit`, so that it cannot steer a terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from serve.errors import OperatorError

# C0 and C1 controls, marks that reorder or hide text (bidirectional marks, zero-width spaces, tag characters, annotations),
# line separators and lone surrogates: a foreign description could move the cursor, rename the window, show its words
# backwards or say what only a machine reads. Joiners stay: Indic scripts, Persian and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def plain(text: object) -> str:
    """Foreign text made safe to print on one line: whatever steers a terminal becomes a space."""
    return _UNSAFE.sub(" ", str(text))


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """Text in a style where `stream` (stdout) is a colour terminal, else as it is."""
    if not (stream or sys.stdout).isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def say(text: str = "") -> None:
    """One line on stdout. When nobody reads it any more, the command goes on to its exit code in silence."""
    _write(sys.stdout, text + "\n")


def emit(value: Any) -> None:
    """A value as indented JSON on stdout, keys in their order."""
    say(_json(value, indent=2))


def emit_line(value: Any) -> None:
    """A value as one JSON line on stdout, flushed at once."""
    say(_json(value, indent=None))
    flush()


def flush() -> bool:
    """Hand on what was said. Returns False when its reader has gone."""
    with _discarding(sys.stdout):
        sys.stdout.flush()
    return sys.stdout not in _left


def complain(error: OperatorError, *, as_json: bool = False, one_line: bool = False) -> None:
    """An error the one way: up to three lines on stderr, or with as_json an object on stdout."""
    if as_json and sys.stdout not in _left:
        (emit_line if one_line else emit)(error.as_dict())
        return
    what = styled(f"error: {plain(error.what)}", "red", sys.stderr)
    _write(sys.stderr, _three_lines(what, error.where, error.next_step))


def trace(error: BaseException) -> None:
    """The traceback of a fault on stderr, made safe line by line."""
    import traceback

    for line in "".join(traceback.format_exception(error)).splitlines():
        _write(sys.stderr, plain(line) + "\n")


def warn(warning: Mapping[str, str]) -> None:
    """A warning (keys warning, where, next) on stdout, in the form of an error."""
    what = styled(f"warning: {plain(warning['warning'])}", "yellow")
    _write(sys.stdout, _three_lines(what, warning["where"], warning["next"]))


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


def age(seconds: float) -> str:
    """A length of time in its largest fitting unit."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def count(number: int, noun: str) -> str:
    """A number with its noun: 1 skill, 2 skills."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _three_lines(what: str, where: str, next_step: str) -> str:
    lines = [what]
    if where:
        lines.append(f"  at {plain(where)}")
    if next_step:
        lines.append(f"  next: {plain(next_step)}")
    return "\n".join(lines) + "\n"


def _json(value: Any, *, indent: int | None) -> str:
    """JSON that says the same and steers no terminal; ASCII only where the terminal knows nothing else."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    text = json.dumps(value, ensure_ascii=encoding != "utf8", indent=indent)
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNSAFE.sub(
        lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1].replace("\x7f", "\\u007f"), text
    )


_left: set[TextIO] = set()  # streams that nobody can read any more


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    with _discarding(stream):
        stream.write(text.encode(encoding, "replace").decode(encoding))


@contextmanager
def _discarding(stream: TextIO) -> Iterator[None]:
    """When a stream cannot be written to, let what its buffer holds and all that follows vanish. A reader that left is no error."""
    try:
        yield
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        _left.add(stream)
        if not isinstance(error, BrokenPipeError):
            raise
