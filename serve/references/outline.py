"""Where the sections of a Markdown text begin and end, by its headings. The build cuts by this, answers look up by it."""

from __future__ import annotations

import html
import re
from collections import Counter
from typing import NamedTuple

from serve.headings import Heading, headings

MAX_SECTIONS = 2_000  # of one text; what comes after the last of them belongs to it
MAX_HEADING_CHARS = 200

_FRONT_LINES = 500  # within which front matter has to end
_FENCES = {"---": re.compile(r"(?:---|\.\.\.)[ \t]*\Z"), "+++": re.compile(r"\+\+\+[ \t]*\Z")}
_FIELDS = {
    "---": re.compile(r"""["']?[\w$@][^:\n]{0,200}:(?:[ \t]|\Z)"""),
    "+++": re.compile(r"\[|[\w\"'][^=\n]{0,200}="),
}
_LINK = re.compile(r"!?\[([^\[\]\n]{0,200})\]\([^()\n]{0,500}\)")
_ATTRIBUTES = re.compile(r"[ \t]*\{[#.:][^{}\n]{0,100}\}\Z")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_STARS = re.compile(r"(?<![\w*\\])(\*{1,3})(?=\S)([^*\n]{1,200}?)(?<![\s\\])\1(?![\w*])")
_BARS = re.compile(r"(?<![\w\\])(_{1,3})(?=\S)([^\n]{1,200}?)(?<![\s\\])\1(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
# Direction marks and zero-width characters show nothing, and make headings differ that read alike.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")


class Section(NamedTuple):
    """The lines from one heading to before the next, trailing blank ones left out.

    headings: the path of headings down to its own, () before the first heading. level: of its own, 0 for none. first,
    last: lines from 1, both inside. bare: nothing but the heading stands there. occurrence: how many sections before it
    have the same path.
    """

    headings: tuple[str, ...]
    level: int
    first: int
    last: int
    bare: bool
    occurrence: int

    def text(self, lines: list[str]) -> str:
        """The section's text, its heading included. lines: of the whole text."""
        return "\n".join(lines[self.first - 1 : self.last])


class Outline(NamedTuple):
    """A text taken apart. front: the front matter between its fences, "" for none, and fence which kind it has ("---" for
    YAML, "+++" for TOML). crowded: it has more headings than sections are made of.
    """

    lines: list[str]
    front: str
    fence: str
    sections: list[Section]
    crowded: bool


def outline(text: str) -> Outline:
    """The sections of a text with plain newlines. Those without any text are not among them, but for bare headings."""
    lines = text.split("\n")
    fence, skipped = _front_matter(lines)
    # Blank instead of gone, so that lines keep their numbers.
    body = [""] * skipped + lines[skipped:] if skipped else lines
    found: list[Heading] = []
    crowded = False
    for heading in headings(body):
        if len(found) == MAX_SECTIONS:
            crowded = True
            break
        found.append(heading)
    front = "\n".join(lines[1 : skipped - 1]) if skipped else ""
    return Outline(lines, front, fence, _sections(body, found, skipped), crowded)


def readable(heading: str) -> str:
    """A heading's words on one line, without links' targets, tags, emphasis, attributes and invisible characters."""
    text = _ATTRIBUTES.sub("", heading[: 4 * MAX_HEADING_CHARS])
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "<" in text:
        text = _TAG.sub("", text)
    text = _STARS.sub(r"\2", text) if "*" in text else text
    # What stands in code is meant as it is.
    text = text.replace("`", "") if "`" in text else _ESCAPE.sub(r"\1", _BARS.sub(r"\2", text))
    text = _INVISIBLE.sub("", html.unescape(text) if "&" in text else text)
    return " ".join(text.split())[:MAX_HEADING_CHARS].rstrip() or " ".join(heading.split())[:MAX_HEADING_CHARS]


def _front_matter(lines: list[str]) -> tuple[str, int]:
    """The kind of front matter and how many lines it takes, fences included; ("", 0) for none.

    It begins in the first line, ends in a fence, and holds fields: a text may also begin with a rule.
    """
    fence = lines[0].rstrip(" \t")
    if fence not in _FENCES:
        return "", 0
    for at, line in enumerate(lines[1:_FRONT_LINES], 1):
        if _FENCES[fence].match(line):
            inside = (held for held in lines[1:at] if held.strip() and not held.startswith("#"))
            first = next(inside, None)
            return (fence, at + 1) if first is None or _FIELDS[fence].match(first) else ("", 0)
    return "", 0


def _sections(body: list[str], found: list[Heading], skipped: int) -> list[Section]:
    starts = [skipped, *(heading.line for heading in found)]
    ends = [*starts[1:], len(body)]
    sections: list[Section] = []
    path: list[tuple[int, str]] = []
    seen: Counter[tuple[str, ...]] = Counter()
    for heading, start, end in zip([None, *found], starts, ends, strict=True):
        if heading is not None:
            while path and path[-1][0] >= heading.level:
                path.pop()
            path.append((heading.level, readable(heading.text)))
        first, last = _trimmed(body, start, end) if heading is None else (start, _trimmed(body, start, end)[1])
        if first >= last:
            continue  # nothing before the first heading
        names = tuple(name for _level, name in path)
        bare = heading is not None and last - first <= _heading_lines(body, heading)
        sections.append(Section(names, heading.level if heading else 0, first + 1, last, bare, seen[names]))
        seen[names] += 1
    return sections


def _trimmed(body: list[str], start: int, end: int) -> tuple[int, int]:
    """The stretch without blank lines at its ends."""
    while start < end and not body[start].strip():
        start += 1
    while end > start and not body[end - 1].strip():
        end -= 1
    return start, end


def _heading_lines(body: list[str], heading: Heading) -> int:
    """How many lines a heading takes: an underlined one two."""
    return 1 if body[heading.line].lstrip().startswith("#") else 2
