"""Reads headings, the first paragraph and the start of a Markdown body, in time linear in its length."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.reader.texts import clean, one_line
from serve.headings import headings as scan

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD_CHARS = 4_000
MAX_HEADINGS = 64
MAX_LEVEL = 4
MAX_HEADING_CHARS = 200
PARAGRAPH_SEARCH = 20_000  # characters of the body in which the first paragraph is looked for

_MANY_LINES = re.compile(r"\n{3,}")

_HEADING = re.compile(r"#{1,6}(?:[ \t]|\Z)")
_RULE = re.compile(r"(?:[-*_=][ \t]*+){3,}+\Z|=++\Z|--++\Z")
_PICTURES = re.compile(r"(?:\[?!\[[^\]\n]{0,300}\]\([^)\n]{0,1000}\)(?:\]\([^)\n]{0,1000}\))?[ \t]*+)++\Z")
_TAGS_ONLY = re.compile(r"(?:</?[A-Za-z!][^<>\n]{0,1000}>[ \t]*+)++\Z")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]++")
_QUOTE = re.compile(r"(?:>[ \t]?)++")


def head(body: str) -> str:
    """The first 4,000 characters of `body`, line structure kept, without trailing spaces and runs of blank lines."""
    start = "\n".join([line.rstrip() for line in body[: HEAD_CHARS * 2].strip().split("\n")])
    if "\n\n\n" in start:
        start = _MANY_LINES.sub("\n\n", start)
    return start[:HEAD_CHARS].rstrip()


def headings(body: str) -> tuple[str, ...]:
    """The headings of levels 1 to 4 in order, outside code blocks and comments; at most 64, of 200 characters each."""
    found: list[str] = []
    for heading in scan(body.split("\n")):
        if heading.level <= MAX_LEVEL and (cleaned := clean(heading.text, {})):
            found.append(cleaned[:MAX_HEADING_CHARS].rstrip())
            if len(found) == MAX_HEADINGS:
                break
    return tuple(found)


def first_paragraph(body: str) -> str:
    """The first paragraph on one line; the first list item where there is no paragraph; else ""."""
    item = ""
    lines: list[str] = []
    for line in _prose(body.lstrip()[:PARAGRAPH_SEARCH].split("\n")):
        if lines and _RULE.match(line) and line[0] in "=-":
            lines.clear()  # the lines before an underline are a heading
        elif not line or _skipped(line):
            if lines:
                break
        elif not lines and (listed := _ITEM.match(line)):
            item = item or line[listed.end() :]
        elif lines and _ITEM.match(line):
            break
        else:
            lines.append(line)
    return one_line(" ".join(lines)) or one_line(item)


def _prose(lines: list[str]) -> Iterator[str]:
    """Stripped lines outside code blocks and comments, without quotation marks; "" stands for what is left out."""
    until = ""
    for raw in lines:
        line = _QUOTE.sub("", raw.strip(), count=1) if raw.lstrip().startswith(">") else raw.strip()
        if until:
            if until in line if until == "-->" else line.startswith(until):
                until = ""
            continue
        if line.startswith(("```", "~~~")):
            until = line[:3]
            yield ""
        elif line.startswith("<!--"):
            until = "" if "-->" in line else "-->"
            yield ""
        else:
            yield line


def _skipped(line: str) -> bool:
    """Headings, rules, tables, pictures and lone tags are no paragraph."""
    return bool(
        _HEADING.match(line)
        or line[0] == "|"
        or _RULE.match(line)
        or (line[0] in "![" and _PICTURES.match(line))
        or (line[0] == "<" and _TAGS_ONLY.match(line))
    )
