"""The descriptor step: cuts what a skill says about itself into purpose, triggers, limits, headings and head."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from pipeline.steps import clauses
from serve.contract import Descriptor
from serve.text import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEAD_CHARS = 4_000
SHORT_CHARS = 700  # the embedder reads 128 tokens, about this many characters
MAX_CLAUSES = 24
MAX_CLAUSE_CHARS = 600
MAX_DESCRIPTION_CHARS = 8_000
MAX_NAME_CHARS = 256
MAX_TAG_CHARS = 100
MAX_HEADINGS = 64
MAX_HEADING_CHARS = 200

_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\n]{0,500}\)")
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>+[ \t]?|[-+*][ \t]+)", re.MULTILINE)
_SCHEME = re.compile(r"https?://(?:www\.)?")
_RULE = re.compile(r"[-=_~]{3,}")
_MARKUP = re.compile(r"[`*|<&\[]")
# Controls, zero-width characters and direction marks: invisible, and a way to smuggle text past a reader.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_EDGES = " -–—:;,|"  # what is left over where a clause was cut
_GENERIC = frozenset(
    tokens(
        "this skill domain is relevant work working task tasks request requests user see skill.md body details topic"
    )
)


def make(name: str, description: str, tags: Sequence[str], headings: Sequence[str], head: str) -> Descriptor:
    """The descriptor of one skill. All texts come back on one line, without markup and invisible characters.

    A description made of trigger clauses alone gives its first trigger as the purpose: it is the only thing it says.
    Clauses that repeat the name, or hold nothing but filler, are left out. `tags` lend their words to a purpose that
    would be empty otherwise.
    """
    title = plain(name[:MAX_NAME_CHARS])
    known = frozenset(tokens(title)) | _GENERIC
    said = [
        (kind, text)
        for kind, text in _clauses(description)
        if kind == clauses.PURPOSE or not known.issuperset(tokens(text))
    ]
    triggers = _of(clauses.TRIGGER, said)
    purpose = " ".join(_closed(text) for text in _of(clauses.PURPOSE, said))
    if not purpose:
        purpose = (
            triggers[0]
            if triggers
            else ", ".join(filter(None, (plain(tag[:MAX_TAG_CHARS]) for tag in tags[:MAX_CLAUSES])))
        )
    return Descriptor(
        name=title,
        purpose=purpose,
        triggers=triggers,
        limits=_of(clauses.LIMIT, said),
        headings=tuple(heading for heading in map(_heading, headings[:MAX_HEADINGS]) if heading),
        head=clean(head)[:HEAD_CHARS].rstrip(),
        short=_short(title, [text for kind, text in said if kind != clauses.LIMIT] or [purpose]),
    )


def plain(text: str) -> str:
    """A text on one line, invisible characters removed."""
    flat = text.replace("\n", " ")
    return " ".join((flat if flat.isprintable() else _INVISIBLE.sub("", text)).split())


def clean(markdown: str) -> str:
    """The words of a Markdown text on one line: code and link texts stay, fences, tags, targets and rules go."""
    text = _without_comments(markdown[: 2 * HEAD_CHARS])
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(" ", text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    text = _LINE_START.sub("", text)
    if "://" in text:
        text = _SCHEME.sub("", text)
    text = _RULE.sub(" ", text.replace("`", " ").replace("*", " ").replace("|", " "))
    if "&" in text:
        text = html.unescape(text)
    return plain(text)


def _clauses(description: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each clause that says anything, in the order they stand in."""
    for kind, found in clauses.split(_without_comments(description[:MAX_DESCRIPTION_CHARS])):
        text = (
            plain(_TAG.sub(" ", found).replace("`", "").replace("**", ""))[:MAX_CLAUSE_CHARS]
            .lstrip(_EDGES)
            .rstrip(_EDGES + "(")
        )
        if any(character.isalnum() for character in text):
            yield kind, text if kind == clauses.PURPOSE else _opened(text.rstrip(".。 "))


def _opened(text: str) -> str:
    """A clause cut out of brackets loses the bracket that closed it."""
    return text[:-1] if text.endswith(")") and "(" not in text else text


def _of(wanted: str, said: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for kind, text in said if kind == wanted))[:MAX_CLAUSES]


def _closed(text: str) -> str:
    return text if text[-1] in ".!?。！？" else text + "."


def _short(title: str, said: Sequence[str]) -> str:
    """What is embedded: the name in words, then what the description says in its own order, limits left out."""
    words = re.sub(r"[-_ ]+", " ", title).strip()
    return " ".join(_closed(text) for text in dict.fromkeys([words, *said]) if text)[:SHORT_CHARS].rstrip(". ")


def _heading(text: str) -> str:
    text = text[:MAX_HEADING_CHARS]
    return (clean(text) if _MARKUP.search(text) else plain(text)).strip("#: ")


def _without_comments(text: str) -> str:
    return " ".join(_outside_comments(text)) if "<!--" in text else text


def _outside_comments(text: str) -> Iterator[str]:
    """The stretches between HTML comments; an unclosed comment hides the rest, as it does in a browser."""
    at = 0
    while (start := text.find("<!--", at)) >= 0:
        yield text[at:start]
        end = text.find("-->", start + 4)
        if end < 0:
            return
        at = end + 3
    yield text[at:]
