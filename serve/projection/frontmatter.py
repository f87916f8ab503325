"""What a harness reads in the head of a SKILL.md, and changing no more of it than the harness needs.

Only plain forms are understood. Whatever is written in another way counts as unknown, and is then written anew.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

HEAD = 4 << 20  # characters within which the head ends; no larger SKILL.md is indexed

_NEAR = 64 << 10  # characters that tell how lines end
_FENCE = re.compile(r"---[ \t]*(?:\r\n|\n|\r)")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*(\r\n|\n|\r|\Z)", re.MULTILINE)
_FIELD = re.compile(r"(?<![^\r\n])(name|description)[ \t]*+:(?=[ \t\r\n]|\Z) *+(?P<value>[^\r\n]*+)(?:\r\n|\n|\r|\Z)")
# A value goes on in the lines that are indented, and in the empty ones between them.
_MORE = re.compile(r"(?:(?:[ \t]*+(?:\r\n|\n|\r))*+[ \t]++[^ \t\r\n][^\r\n]*+(?:\r\n|\n|\r|\Z))*+")
# Texts that YAML takes for something other than a text.
_NO_TEXT = re.compile(
    r"(?:true|false|yes|no|on|off|null|y|n|~|[-+]?[\d._,:]+(?:e[-+]?\d+)?|0[xob][\da-f_]+|[-+]?\.(?:inf|nan)|\d{4}-\d.*)",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[^\W_][^:'\"]*")


class Head(NamedTuple):
    """What the head says.

    name: None when there is none, "" when it cannot be told. described: whether there is a description. spans: where the
    lines of these fields are, from and to. start: where the first line of the head is, None when no head is to be changed.
    odd_end: where the closing line is when only some readers know it as one, dots or dashes that end the file, else None.
    """

    name: str | None
    described: bool
    spans: dict[str, tuple[int, int]]
    start: int | None
    odd_end: tuple[int, int] | None = None


_UNKNOWN = Head("", False, {}, None)


def read(text: str) -> Head:
    """The head of a SKILL.md; a byte order mark before it is allowed."""
    begin = 1 if text.startswith("\ufeff") else 0
    fence = _FENCE.match(text, begin)
    end = None if fence is None else _closing(text, fence.end())
    if fence is None or end is None:
        return _UNKNOWN if text.startswith(("---", "<!--"), begin) else Head(None, False, {}, None)
    spans: dict[str, tuple[int, int]] = {}
    values: dict[str, str] = {}
    at = fence.end()
    while field := _FIELD.search(text, at, end.start()):
        more = _MORE.match(text, field.end(), end.start())
        at = field.end() if more is None else more.end()
        if field[1] in spans:
            return _UNKNOWN
        spans[field[1]] = (field.start(), at)
        values[field[1]] = text[field.start("value") : at].strip(" \r\n")
    name = None if "name" not in values else _scalar(values["name"])
    odd = text.startswith("...", end.start()) or not end[1]
    return Head(name, bool(values.get("description")), spans, fence.end(), end.span() if odd else None)


def renamed(text: str, name: str | None, description: str = "") -> str:
    """The text with another name in its head, None to keep it, and with a description where one is given.

    A closing line that only some readers know becomes one that all know. All else stays as it is.
    """
    head = read(text)
    if head.start is None:
        line_end = "\r\n" if "\r\n" in text[:_NEAR] else "\n"
        body = text.removeprefix("\ufeff")
        named = "" if name is None else f"name: {_written(name)}{line_end}"
        described = f"description: {_quoted(description)}{line_end}" if description else ""
        return f"---{line_end}{named}{described}---{line_end}{line_end}{body}"
    line_end = "\r\n" if text.startswith("\r\n", head.start - 2) else "\n"
    first = (head.start, head.start)
    parts = [] if name is None else [(head.spans.get("name", first), f"name: {_written(name)}{line_end}")]
    if description:
        parts.append((head.spans.get("description", first), f"description: {_quoted(description)}{line_end}"))
    if head.odd_end is not None:
        parts.append((head.odd_end, f"---{line_end}"))
    for (start, stop), line in sorted(parts, key=lambda part: part[0], reverse=True):
        text = text[:start] + line + text[stop:]
    return text


def _closing(text: str, at: int) -> re.Match[str] | None:
    """The line that ends a head which begins at `at`: the first of dashes or dots, of dots right above dashes the dashes."""
    end = _END.search(text, at)
    if end is not None and text[end.start()] == "." and (dashes := _FENCE.match(text, end.end())):
        end = _END.match(text, dashes.start())
    return end if end is not None and end.start() - at <= HEAD else None


def _scalar(value: str) -> str:
    """A value that is a text on one line; "" when it is anything else."""
    if value[:1] in {'"', "'"}:
        quoted = re.fullmatch(r"(['\"])([^'\"\\\r\n]*)\1(?:[ \t]+#[^\r\n]*)?", value)
        return quoted[2] if quoted else ""
    value = re.sub(r"[ \t]+#[^\r\n]*\Z", "", value)
    return value if value.isprintable() and _PLAIN.fullmatch(value) and not _NO_TEXT.fullmatch(value) else ""


def _written(name: str) -> str:
    return name if _scalar(name) == name else _quoted(name)


def _quoted(text: str) -> str:
    """A text between double quotes that YAML reads back as it is. Its characters that cannot be shown are left out."""
    return json.dumps("".join(char for char in " ".join(text.split()) if char.isprintable()), ensure_ascii=False)
