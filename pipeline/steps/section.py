"""The section step: cuts a Markdown file into the rows of the index, one a heading, long ones with an overlap."""

from __future__ import annotations

import re
import tomllib
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import msgspec
from blake3 import blake3

from pipeline.reader.texts import clean
from pipeline.reader.tree import TreeError, load
from pipeline.steps.anchors import Anchors
from serve.decode import decode
from serve.references.outline import Outline, Section, outline

TOKENS = 512  # of a row at most
OVERLAP = 64  # tokens of a row that begin the next one of its section, and a word's begin more
MAX_TITLE = 200
_ENDING = 64  # tokens at the end of a full row among which it rather ends with a paragraph, a line or a word
_WORD = 16  # tokens that a row begins earlier at most, in order to begin with a word
_LONG = 32  # characters: a longer token (a digest, a line of base64) counts as several
_PIECE = 8
_BLOCK = 20_000  # characters given to a tokenizer at once: it needs some hundred times their memory
_SPACE = re.compile(r"\s")

Spans = Callable[[str], Sequence[tuple[int, int]]]  # start and end of each token of a text, in characters


class Part(msgspec.Struct, frozen=True, array_like=True):
    """One row to be: a section, or a part of a long one. Fields as in `serve.references.contract.Section`.

    anchor: of the heading, "" before the first one. content: the text of this row. text: digest of the whole section's.
    """

    anchor: str
    headings: tuple[str, ...]
    occurrence: int
    top: int
    bottom: int
    first: int
    last: int
    start: int
    end: int
    part: int
    parts: int
    text: str
    tokens: int
    content: str


class Sectioned(msgspec.Struct, frozen=True, array_like=True):
    """A file taken apart. title: what its front matter calls it, "" for nothing. notes: what was unusual about it."""

    title: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...]


def make(data: bytes, spans: Spans) -> Sectioned:
    """The rows of a file's bytes, top to bottom. Never raises; in time and memory linear in their number.

    A bare heading that others follow below it is no row: it stands in the path of theirs.
    """
    text, notes, _crlf, _refused = decode(data)
    taken = outline(text)
    if taken.crowded:
        notes.append("too_many_headings")
    anchors = Anchors()
    parts: list[Part] = []
    for section in _kept(taken):
        anchor = anchors.of(section.headings[-1]) if section.headings else ""
        parts += _parts(section, anchor, section.text(taken.lines), spans)
    return Sectioned(_title(taken), tuple(parts), tuple(notes))


def _kept(taken: Outline) -> Iterator[Section]:
    for section, after in zip_longest(taken.sections, taken.sections[1:]):
        if not (section.bare and after is not None and after.level > section.level):
            yield section


def _title(taken: Outline) -> str:
    if not taken.front:
        return ""
    try:
        values = load(taken.front).value if taken.fence == "---" else tomllib.loads(taken.front)
    except (TreeError, tomllib.TOMLDecodeError, RecursionError):
        return ""
    title = values.get("title") if isinstance(values, dict) else None
    return clean(title, {})[:MAX_TITLE].rstrip() if isinstance(title, str) else ""


def _parts(section: Section, anchor: str, text: str, spans: Spans) -> Iterator[Part]:
    tokens = _tokens(text, spans)
    whole = len(tokens.starts)
    cuts = list(_cuts(text, tokens)) if whole > TOKENS else [(0, len(text), whole)]
    digest = blake3(text.encode("utf-8", "surrogatepass")).hexdigest(length=16)
    counted, line = 0, section.first
    for number, (start, end, size) in enumerate(cuts, 1):
        line += text.count("\n", counted, start)
        counted = start
        yield Part(
            anchor=anchor,
            headings=section.headings,
            occurrence=section.occurrence,
            top=section.first,
            bottom=section.last,
            first=line,
            last=line + text.count("\n", start, end),
            start=start,
            end=end,
            part=number,
            parts=len(cuts),
            text=digest,
            tokens=size,
            content=text[start:end],
        )


class _Tokens(NamedTuple):
    """Where each token starts and ends, in characters. Arrays: a large file has millions."""

    starts: array[int]
    ends: array[int]


def _tokens(text: str, spans: Spans) -> _Tokens:
    """The text's tokens, found block by block; very long ones count as several."""
    found = _Tokens(array("L"), array("L"))
    at = 0
    while at < len(text):
        end = _block_end(text, at)
        for start, stop in spans(text[at:end]):
            places = range(start, stop, _PIECE if stop - start > _LONG else stop - start or 1)
            found.starts.extend(at + place for place in places)
            found.ends.extend(at + min(place + places.step, stop) for place in places)
        at = end
    return found


def _block_end(text: str, at: int) -> int:
    end = at + _BLOCK
    if end >= len(text):
        return len(text)
    newline = text.rfind("\n", at + 1, end)
    space = newline if newline > 0 else text.rfind(" ", at + 1, end)
    return space if space > 0 else end


def _cuts(text: str, tokens: _Tokens) -> Iterator[tuple[int, int, int]]:
    """Start and end of each part in characters, and its number of tokens."""
    begin = 0
    while True:
        end = begin + TOKENS
        last = end >= len(tokens.starts)
        end = len(tokens.starts) if last else _ended(text, tokens, end)
        start = tokens.starts[begin] if begin else 0
        stop = len(text) if last else tokens.ends[end - 1]
        yield start, stop, end - begin
        if last:
            return
        begin = _begun(text, tokens, end - OVERLAP)


def _ended(text: str, tokens: _Tokens, end: int) -> int:
    """Where a row that would end before token `end` rather ends: after a paragraph, else a line, else a word."""
    best = (0, end)
    for place in range(end, end - _ENDING, -1):
        between = text[tokens.ends[place - 1] : tokens.starts[place]]
        worth = min(between.count("\n"), 2) * 2 or len(between) > 0
        if worth > best[0]:
            best = (int(worth), place)
    return best[1]


def _begun(text: str, tokens: _Tokens, begin: int) -> int:
    """Where a row that would begin with token `begin` begins, so that it begins with a whole word."""
    for place in range(begin, begin - _WORD, -1):
        if _SPACE.match(text, tokens.starts[place] - 1):
            return place
    return begin
