"""Finds the frontmatter in a text: where it begins, where it may end, and what is unusual about either."""

from __future__ import annotations

import re
from typing import NamedTuple

from pipeline.reader.tree import MAX_TEXT

BEFORE_CHARS = 4_000  # text this long before an opening fence is a document of its own

_DASH = "-\u2010-\u2015\u2212"  # the hyphen and what editors turn runs of it into
_RUN_OF_DASHES = rf"(?:[{_DASH}]{{2,}}+|[\u2014\u2015\u2e3a\u2e3b])"
_BLANK_LINES = re.compile(r"(?:[ \t\f\v]*+\n)++")
_OPENING = re.compile(r"---[ \t]*+(?:\n|\Z)")
_ODD_OPENING = re.compile(rf"[ \t]*+(?:{_RUN_OF_DASHES}|---[ \t]*+(?:ya?ml\b|#)[^\n]{{0,80}})[ \t]*+\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*+$", re.MULTILINE)
_ODD_CLOSING = re.compile(rf"^[ \t]*+{_RUN_OF_DASHES}[ \t]*+$", re.MULTILINE)
_ODD_CLOSING_AT_MARGIN = re.compile(rf"^{_RUN_OF_DASHES}[ \t]*+$", re.MULTILINE)
_GLUED_CLOSING = re.compile(r"-{3,}+[ \t]*+(?=\S)")
_CODE_FENCE = re.compile(r"(?:```+|~~~+)[^\n`]{0,80}\n")
_CODE_FENCE_LINE = re.compile(r"^[ \t]*+(?:```|~~~)", re.MULTILINE)
_CODE_FENCE_END = re.compile(r"\s*+(?:```+|~~~+)[ \t]*+(?:\n|\Z)")
_LAST_CODE_FENCE = re.compile(r"^(?:```+|~~~+)[ \t]*+\Z", re.MULTILINE)
_HEADING_LINE = re.compile(r"^#{1,6}[ \t]", re.MULTILINE)
_MAIN_KEY = re.compile(r"(?:name|description)[ \t]*+[:\uff1a]", re.IGNORECASE)
KEY = re.compile(
    r"""(?:(?P<quote>["']?)(?P<key>[A-Za-z_][\w.-]{0,80})(?P=quote)[ \t]*+:(?=\s|\Z)"""
    r"""|(?P<known>(?i:name|description|summary|tags))[ \t]*+[:\uff1a])"""
)
_MARGIN_KEY = re.compile(rf"[ \t]*+{KEY.pattern}")
_LATER_OPENING = re.compile(
    r"^---[ \t]*+\n(?:[ \t]*+\n)*+(?=(?:name|description)[ \t]*+:)", re.IGNORECASE | re.MULTILINE
)


class Opening(NamedTuple):
    """The start of frontmatter: offset of its first line, and of the text before it that belongs to the body."""

    start: int
    before: str
    diagnostics: tuple[str, ...]
    fenced: bool  # False: keys without an opening fence
    wrapped: bool = False  # inside a Markdown code fence
    odd: bool = False  # the fence is indented, too long or of other dashes


class Block(NamedTuple):
    """Frontmatter and body as one reading of the fences has them."""

    start: int
    end: int
    body: int  # offset of the body
    diagnostics: tuple[str, ...] = ()


def opening(text: str) -> Opening | None:
    """Where frontmatter begins, or None when the text has none."""
    at, noted = _skip_blank(text, 0, "leading_blank")
    while text.startswith("<!--", at) and (end := text.find("-->", at)) >= 0:
        noted = dict.fromkeys((*noted, "leading_comment"))
        at, _ = _skip_blank(text, end + 3, "")
    if code := _CODE_FENCE.match(text, at):
        inner, _ = _skip_blank(text, code.end(), "")
        if fence := _OPENING.match(text, inner):
            return Opening(fence.end(), "", (*noted, "frontmatter_in_code_fence"), fenced=True, wrapped=True)
        if _MAIN_KEY.match(text, inner):
            return Opening(inner, "", (*noted, "frontmatter_in_code_fence"), fenced=True, wrapped=True)
        return None
    if fence := _OPENING.match(text, at):
        return Opening(fence.end(), "", tuple(noted), fenced=True)
    if (fence := _ODD_OPENING.match(text, at)) and _MARGIN_KEY.match(text, _skip_blank(text, fence.end(), "")[0]):
        return Opening(fence.end(), "", (*noted, "malformed_opening_fence"), fenced=True, odd=True)
    if _MAIN_KEY.match(text, at):
        return Opening(at, "", (*noted, "no_opening_fence"), fenced=False)
    return _later_opening(text, at)


def block(text: str, begin: Opening) -> Block:
    """The block as its fences say it: up to the first proper closing fence, else up to what looks like its end."""
    start = begin.start
    if begin.wrapped:
        return _wrapped(text, start)
    if not begin.fenced:
        end = run_end(text, start)
        at, _ = _skip_blank(text, end, "")
        closing = _CLOSING.match(text, at) or _ODD_CLOSING.match(text, at)
        return Block(start, end, _line_after(text, closing.end()) if closing else end)
    closing = _CLOSING.search(text, start)
    if begin.odd:  # an opening fence of another shape has a closing fence of that shape
        odd = _ODD_CLOSING.search(text, start)
        if odd and not (closing and closing.start() <= odd.start()):
            return Block(start, odd.start(), _line_after(text, odd.end()), ("malformed_closing_fence",))
    if closing:
        return Block(start, closing.start(), _line_after(text, closing.end()))
    return _odd_end(text, start, _ODD_CLOSING, len(text))


def _odd_end(text: str, start: int, fences: re.Pattern[str], limit: int) -> Block:
    """A block without a proper closing fence up to `limit`: to a malformed one, or to where the keys end."""
    end = run_end(text, start, limit)
    odd = fences.search(text, start, limit)
    if odd and odd.start() <= _skip_blank(text, end, "")[0]:
        return Block(start, odd.start(), _line_after(text, odd.end()), ("malformed_closing_fence",))
    if glued := _GLUED_CLOSING.match(text, end, limit):
        return Block(start, end, glued.end(), ("malformed_closing_fence",))
    return Block(start, end, end, ("unclosed_frontmatter",))


def shorter(text: str, first: Block) -> Block | None:
    """Another end for a block that is not YAML up to its closing fence: that fence may be a rule far down the body."""
    other = _odd_end(text, first.start, _ODD_CLOSING_AT_MARGIN, first.end)
    closed = other.diagnostics == ("malformed_closing_fence",)
    if closed or (other.end < first.end and _HEADING_LINE.search(text, other.end, first.end)):
        return other
    return None


def second_block(text: str, at: int) -> Block | None:
    """A second fenced block of keys right where the body begins."""
    at, _ = _skip_blank(text, at, "")
    fence = _OPENING.match(text, at)
    if not fence or not KEY.match(text, fence.end()):
        return None
    closing = _CLOSING.search(text, fence.end())
    if not closing or run_end(text, fence.end(), closing.start()) < closing.start():
        return None
    return Block(fence.end(), closing.start(), _line_after(text, closing.end()))


def without_wrapper(body: str) -> str:
    """The body of a file whose frontmatter stood in a code fence, without that fence's closing line."""
    if end := _CODE_FENCE_END.match(body):
        return body[end.end() :]
    stripped = body.rstrip()
    last = _LAST_CODE_FENCE.search(stripped, max(0, stripped.rfind("\n") + 1))
    # An odd number of fences: the last one closes the wrapper and not a block of the body.
    if last and len(_CODE_FENCE_LINE.findall(stripped)) % 2:
        return stripped[: last.start()]
    return body


def run_end(text: str, start: int, limit: int | None = None) -> int:
    """Offset of the first line from `start` that cannot be part of unfenced frontmatter, or of the text's end."""
    stop = len(text) if limit is None else limit
    if stop > start + MAX_TEXT:
        stop = text.rfind("\n", start, start + MAX_TEXT) + 1 or start + MAX_TEXT
    at, last, gap = start, start, False
    while at < stop:
        line_end = text.find("\n", at, stop)
        line_end = stop if line_end < 0 else line_end
        line = text[at:line_end]
        if not line.strip():
            gap = True
        elif not _continues(text, line, line_end + 1, gap) or _CLOSING.match(text, at):
            return last
        else:
            gap = False
            last = min(line_end + 1, stop)
        at = line_end + 1
    return stop if not gap else last


def _continues(text: str, line: str, following: int, gap: bool) -> bool:
    """Whether `line` may be frontmatter. gap: a blank line stands before it."""
    if line[0] in " \t":
        return True
    if line.startswith(("```", "~~~", "---")):
        return False
    if line[0] == "#":
        return _comments_a_key(text, following)
    return not gap or _is_key(line)


def _comments_a_key(text: str, following: int) -> bool:
    """Whether a line that begins with "#" is a comment above keys, and not a heading; `following` is the next line."""
    for line in text[following : following + 500].split("\n")[:8]:
        if not line.startswith("#"):
            return _is_key(line)
    return False


def _is_key(line: str) -> bool:
    """Whether `line` begins with a key and not with a word of prose that has a colon after it."""
    found = KEY.match(line)
    if not found:
        return False
    key = found["key"] or found["known"]
    return key[:1].islower() or key.lower() in ("name", "description", "summary", "tags", "metadata")


def has_key(source: str) -> bool:
    """Whether any line of `source` begins with a key, at whatever margin."""
    return any(_MARGIN_KEY.match(line) for line in source.split("\n"))


def _wrapped(text: str, start: int) -> Block:
    code = _CODE_FENCE_LINE.search(text, start)
    closing = _CLOSING.search(text, start, code.start() if code else len(text))
    if closing:
        return Block(start, closing.start(), _line_after(text, closing.end()))
    end = code.start() if code else run_end(text, start)
    return Block(start, end, end)


def _later_opening(text: str, at: int) -> Opening | None:
    """An opening fence with keys after it, some lines down and not in a code block."""
    for fence in _LATER_OPENING.finditer(text, at, at + BEFORE_CHARS):
        before = text[at : fence.start()]
        if len(_CODE_FENCE_LINE.findall(before)) % 2 == 0 and _CLOSING.search(text, fence.end()):
            return Opening(fence.end(), before, ("text_before_frontmatter",), fenced=True)
    return None


def _skip_blank(text: str, at: int, diagnostic: str) -> tuple[int, dict[str, None]]:
    blank = _BLANK_LINES.match(text, at)
    if not blank:
        return at, {}
    return blank.end(), {diagnostic: None} if diagnostic else {}


def _line_after(text: str, at: int) -> int:
    return min(at + 1, len(text))
