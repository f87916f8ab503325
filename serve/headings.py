"""Finds the headings of a Markdown text, outside code blocks, comments and raw HTML, in time linear in its length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LINE_CHARS = 1_000  # of a heading's line that are read at all
_MARKS = frozenset("#`~<=-*+0123456789")  # what a line that matters for headings may begin with
# A code fence (also as a list item's first line), a comment, raw HTML whose lines are no Markdown, an ATX heading or the
# underline of a heading.
_MARK = re.compile(
    r"[ \t]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?(?P<fence>```+|~~~+)"
    r"|[ ]{0,3}(?:(?P<comment><!--)|(?P<raw><(?i:pre|script|style|textarea)(?=[\s>]|\Z))"
    r"|(?P<atx>\#{1,6})(?=[ \t])|(?P<under>=++|-{2,}+)[ \t]*+\Z)"
)
_ATX_CLOSE = re.compile(r"(?:^|[ \t])#++\Z")
_NOT_TEXT = re.compile(
    r"[ \t]*(?:#{1,6}(?:[ \t]|\Z)|>|[-*+][ \t]|\d{1,9}[.)][ \t]|\||<!--|```|~~~|[-=*_ \t]*\Z)|[ ]{4}|\t"
)
_COMMENT_END = re.compile("-->")
_RAW_END = re.compile("</(?:pre|script|style|textarea)>", re.IGNORECASE)


class Heading(NamedTuple):
    """A heading. line: the place of the line it begins on, from 0. level: 1 to 6. text: without its marks, as written."""

    line: int
    level: int
    text: str


def headings(lines: Sequence[str]) -> Iterator[Heading]:
    """The headings among `lines`, in order. One without a text is none."""
    fence = ""
    hidden: re.Pattern[str] | None = None  # what ends a comment or raw HTML
    previous = ""
    for at, line in enumerate(lines):
        above, previous = previous, line
        if hidden is not None:
            previous = ""
            hidden = None if hidden.search(line) else hidden
            continue
        start = line.lstrip()
        if start[:1] not in _MARKS or not (mark := _MARK.match(line)):
            continue
        if mark["fence"]:
            fence = _fence_after(mark, line, fence)
        elif fence:
            continue
        elif mark["comment"] or mark["raw"]:
            end = _COMMENT_END if mark["comment"] else _RAW_END
            hidden = None if end.search(line, mark.end()) else end
        elif mark["atx"]:
            if text := _ATX_CLOSE.sub("", line[mark.end() : _LINE_CHARS].strip()).strip():
                yield Heading(at, len(mark["atx"]), text)
        elif len(above) <= _LINE_CHARS and not _NOT_TEXT.match(above):
            yield Heading(at - 1, 1 if mark["under"][0] == "=" else 2, above.strip())


def _fence_after(mark: re.Match[str], line: str, fence: str) -> str:
    """The code fence that is open after `line`, "" for none; `fence` was open before it."""
    run = mark["fence"]
    rest = line[mark.end() :]
    if not fence:
        return "" if run[0] == "`" and "`" in rest else run
    bare = not rest.strip() and not line[: mark.start("fence")].strip()
    return "" if bare and run[0] == fence[0] and len(run) >= len(fence) else fence
