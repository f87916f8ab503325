"""The one repair of frontmatter that is not YAML: each top-level entry stands alone, a broken one by its raw text."""

from __future__ import annotations

import re
from typing import NamedTuple

from pipeline.reader.fence import KEY
from pipeline.reader.texts import one_line
from pipeline.reader.tree import MAX_TEXT, TreeError, Value, load

MAX_ENTRIES = 256

# A value that is text in YAML's eyes only once it is quoted: it holds a colon or a hash that YAML takes for its own.
_NEEDS_QUOTES = re.compile(
    r"""^(?P<key>[ \t]*+(?:-[ \t]+)?[\w.-]{1,80}:[ \t]++)"""
    r"""(?P<value>[^\s"'\[{|>&*!#][^\n]*?(?::[ \t]|[ \t]\#)[^\n]*+)$""",
    re.MULTILINE,
)
_INDENT = re.compile(r"^[ \t]++", re.MULTILINE)
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]{0,3}(?:[ \t]++#.*)?\Z")
# Lines at the margin that continue nothing: comments, keys that are no text, what a merge leaves behind.
_NOT_TEXT = re.compile(r"#|[?:](?:[ \t]|\Z)|(?:<{7}|={7}|>{7}|\|{7})(?:[ \t]|\Z)")
_LIST_ITEM = re.compile(r"-[ \t]++(?=\S)")
_TRAILING_COMMENT = re.compile(r"[ \t]#.*\Z")
_OPEN_QUOTE = {'"': re.compile(r'(?<!\\)"'), "'": re.compile(r"(?<!')'(?!')")}


class Raw(str):
    """Text of an entry that is not YAML, as its author wrote it, on one line and without its quotes."""

    __slots__ = ()


class Opaque:
    """A value that asks for an object: never made, never shown."""


class _Entry(NamedTuple):
    key: str
    inline: str
    lines: list[str]  # the entry's lines as they stand, the first included


def repair(block: str, wanted: frozenset[str]) -> tuple[dict[str, Value], tuple[str, ...]]:
    """The entries of `block` whose lower-case key is in `wanted`, and the keys that came twice. The last one wins.

    A value is what YAML makes of the entry alone, or of the entry with its plain texts quoted and its tabs expanded;
    else a `Raw`, or `Opaque` for one with a tag that asks for more than data.
    """
    found: dict[str, Value] = {}
    twice: dict[str, None] = {}
    anchors: dict[str, tuple[Value, int]] = {}
    for entry in _entries(block, wanted)[:MAX_ENTRIES]:
        needed = entry.key.lower() in wanted
        if not needed and " &" not in entry.inline:
            continue
        value = _value(entry, anchors)
        if needed:
            if entry.key in found:
                twice[entry.key] = None
            found[entry.key] = value
    return found, tuple(twice)


def _entries(block: str, wanted: frozenset[str]) -> list[_Entry]:
    entries: list[_Entry] = []
    for line in _without_margin(block[:MAX_TEXT]).split("\n"):
        key = KEY.match(line) or (_misplaced(line, entries[-1], wanted) if entries else None)
        if key:
            entries.append(_Entry(key["key"] or key["known"], line[key.end() :].strip(), [line.lstrip()]))
        elif entries and not _NOT_TEXT.match(line):
            entries[-1].lines.append(line)
    return entries


def _misplaced(line: str, above: _Entry, wanted: frozenset[str]) -> re.Match[str] | None:
    """The key of a line that is indented though the entry above it is complete in its own line."""
    if line[:1] not in (" ", "\t") or not above.inline or above.inline[0] in "|>\"'[{&":
        return None
    key = KEY.match(line, len(line) - len(line.lstrip()))
    return key if key and (key["key"] or key["known"]).lower() in wanted else None


def _without_margin(block: str) -> str:
    """`block` with the indentation taken away that all its lines share."""
    lines = [line for line in block.split("\n") if line.strip()]
    margin = min((len(line) - len(line.lstrip(" \t")) for line in lines), default=0)
    return "\n".join(line[margin:] for line in block.split("\n")) if margin else block


def _value(entry: _Entry, anchors: dict[str, tuple[Value, int]]) -> Value:
    source = "\n".join(entry.lines)
    # A mended text would no longer tell a comment after a name; what stands in one line is better taken raw.
    for attempt in (source,) if entry.inline[:1].isalnum() else (source, _mended(source)):
        try:
            loaded = load(attempt, anchors).value
        except TreeError:
            continue
        if isinstance(loaded, dict) and list(loaded) == [entry.key]:
            return loaded[entry.key]
    inline = "" if _BLOCK_HEADER.match(entry.inline) else entry.inline
    text = one_line(" ".join([inline, *entry.lines[1:]]))
    if text.startswith(("!!", "!<")):
        return Opaque()
    if not inline and text.startswith("- "):
        return [Raw(_unquoted(_LIST_ITEM.sub("", line.strip(), count=1))) for line in entry.lines[1:] if line.strip()]
    return Raw(_unquoted(text))


def _mended(source: str) -> str:
    untabbed = _INDENT.sub(lambda indent: indent[0].expandtabs(2), source)
    return _NEEDS_QUOTES.sub(_quoted, untabbed)


def _quoted(entry: re.Match[str]) -> str:
    value = entry["value"].rstrip().replace("'", "''")
    return f"{entry['key']}'{value}'"


def _unquoted(text: str) -> str:
    """`text` without a pair of quotes around all of it, or a lone quote before it."""
    quote = text[:1]
    if quote not in _OPEN_QUOTE or len(text) < 2:
        return text
    inner_quote = _OPEN_QUOTE[quote].search(text, 1)
    if inner_quote is None:
        return text[1:]
    at = inner_quote.start()
    # A quote inside that opens a word, or stands in one, leaves the first and the last as a pair around all.
    closes = not text[at - 1].isspace() and not text[at + 1 : at + 2].isalnum()
    if not text.endswith(quote) or (closes and at < len(text) - 1):
        return text
    inner = text[1:-1]
    return inner.replace('\\"', '"').replace("\\\\", "\\") if quote == '"' else inner.replace("''", "'")


def without_comment(text: str) -> str:
    """`text` up to a YAML comment."""
    return _TRAILING_COMMENT.sub("", text)
