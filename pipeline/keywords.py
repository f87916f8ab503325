"""Finding keywords in text: whole words only, whatever the case, the hyphens or the script.

A text becomes a list of folded words; a keyword is a short list of such words, looked up in a tree of dictionaries.
So a keyword can never match inside a word, and the time grows with the text, not with the number of keywords.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

# Names that lose their meaning with their punctuation, and the spelling they share.
_SPELLED = {"c++": "cpp", "c#": "csharp", "f#": "fsharp", ".net": "dotnet"}
_SIGNED = re.compile(r"(?<![^\W_])(?:c\+\+|[cf]#|\.net)(?!\w)")

# Every ASCII character that is not part of a word becomes a blank.
_BLANKS = {code: " " for code in range(128) if not chr(code).isalnum()}

# Scripts written without spaces between words (Thai, Lao, Burmese, Khmer, kana, Han, Hangul): each character is a word
# of its own, so that a Latin keyword beside them stands alone and a keyword in such a script is found wherever its
# characters follow each other.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
# Marks that belong to the letter before them: accents left over after folding, Hebrew, Arabic and Indic vowel signs.
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_WORD = re.compile(f"[{_UNSPACED}]|[^\\W_{_UNSPACED}]+(?:[{_MARKS}]+[^\\W_{_UNSPACED}]*)*")
_SYMBOLS = re.compile(rf"[^\x00-\x7f\w{_MARKS}]+")
# Invisible characters that would cut a word in two: soft hyphen, zero-width space and joiners, word joiner, BOM.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]+")

_INNER_BLANK = re.compile(f"(?<=[{_UNSPACED}]) (?=[{_UNSPACED}])")

_SINGULAR = re.compile(r"[a-z]{2,}[a-rt-z]")
_SIBILANT = ("x", "z", "ch", "sh")
_END = ""  # the key under which a tree node keeps what ends there: no word is empty
_Node = dict[str, Any]


def words(text: str) -> list[str]:
    """The folded words of `text` in order: lower case, compatibility forms resolved, punctuation gone.

    Hyphen, underscore and white space all just separate words.
    """
    if not text.isascii():
        folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
        text = _SYMBOLS.sub(" ", unicodedata.normalize("NFKC", folded))
    text = text.lower()
    if "+" in text or "#" in text or ".net" in text:
        text = _SIGNED.sub(lambda found: f" {_SPELLED[found[0]]} ", text)
    return text.translate(_BLANKS).split() if text.isascii() else _WORD.findall(text)


def joined(parts: Iterable[str]) -> str:
    """A keyword in its one spelling: its words with blanks between them, none inside a script without blanks."""
    return _INNER_BLANK.sub("", " ".join(parts))


def plurals(word: str) -> tuple[str, ...]:
    """The regular English plural of a Latin word of three letters or more; none for a word that ends in "s"."""
    if not _SINGULAR.fullmatch(word):
        return ()
    if word[-1] == "y" and word[-2] not in "aeiou":
        return (f"{word[:-1]}ies",)
    return (f"{word}es",) if word.endswith(_SIBILANT) else (f"{word}s",)


class Matcher:
    """Looks up many keywords at once; `keywords` are (keyword, value) pairs, the values small integers.

    A keyword whose last word is singular is also found in the plural; one written in the plural only as written.
    """

    def __init__(self, keywords: Iterable[tuple[str, int]]) -> None:
        self._tree: _Node = {}
        for keyword, value in keywords:
            *first, last = words(keyword)
            for form in (last, *plurals(last)):
                self._add((*first, form), value)

    def _add(self, parts: tuple[str, ...], value: int) -> None:
        node = self._tree
        for part in parts:
            node = node.setdefault(part, {})
        node[_END] = (*node.get(_END, ()), value)

    def find(self, tokens: list[str]) -> list[tuple[int, tuple[int, ...]]]:
        """Each keyword in `tokens` as (value, values of the longer keyword that spans the same words, or none)."""
        tree = self._tree
        last = len(tokens) - 1
        hits: list[tuple[int, tuple[int, ...]]] = []
        span_end = 0
        span_values: tuple[int, ...] = ()
        for start in [index for index, token in enumerate(tokens) if token in tree]:
            node = tree[tokens[start]]
            if start == last or tokens[start + 1] not in node:  # by far the most are words that stand alone
                values = node.get(_END)
                if values is None:
                    continue
                found = [(start + 1, values)]
            else:
                found = self._from(start, tokens)
            if found and found[-1][0] > span_end:
                span_end, span_values = found.pop()
                hits += [(value, ()) for value in span_values]
            hits += [(value, span_values) for _, values in found for value in values]
        return hits

    def _from(self, start: int, tokens: list[str]) -> list[tuple[int, tuple[int, ...]]]:
        """The keywords that begin at `start`, the shortest first, as (end, values)."""
        node = self._tree[tokens[start]]
        end = start + 1
        found = [(end, node[_END])] if _END in node else []
        while end < len(tokens) and tokens[end] in node:
            node = node[tokens[end]]
            end += 1
            if _END in node:
                found.append((end, node[_END]))
        return found
