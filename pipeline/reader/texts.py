"""Cleans texts that come from a skill: one line, no control characters, nothing invisible."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
# Zero-width characters, fillers, direction marks, tag characters, supplementary variation selectors: they show nothing
# and are a way to smuggle text past a reader. The joiners are judged by what stands beside them.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]"
    "|(?<![^\x00-\u02ff\u2000-\u206f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\u02ff\u2000-\u206f])"
)


def one_line(text: str) -> str:
    """`text` with every run of white space as one space, stripped."""
    return " ".join(text.split())


def clean(text: str, noted: dict[str, None]) -> str:
    """`text` on one line without control and invisible characters; adds to `noted` what had to go.

    A joiner stays between two characters of a script or emoji that needs it, as in Persian words and joined emoji.
    """
    text = one_line(text)
    if text.isascii() and text.isprintable():
        return text
    plain = _CONTROL.sub("", text)
    if plain != text:
        noted["control_chars"] = None
    seen = _INVISIBLE.sub("", plain)
    if seen != plain:
        noted["invisible_chars"] = None
        return one_line(seen)
    return plain if plain == text else one_line(plain)


def cut(text: str, limit: int) -> str:
    """At most `limit` characters of `text`, ending at a word where that loses little."""
    if len(text) <= limit:
        return text
    kept = text[:limit]
    space = kept.rfind(" ")
    return kept[:space] if space > limit * 3 // 4 else kept
