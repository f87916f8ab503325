"""Finds what somebody probably meant, and makes foreign text fit to be shown in a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 80  # characters of a foreign value that a message repeats


def suggest(word: str, known: Iterable[str]) -> str:
    """The known word nearest to `word`, or "" when none is near."""
    import difflib  # costs 8 ms and is needed by mistakes only

    by_fold = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold()[:LONGEST], by_fold, n=1, cutoff=0.6)
    return by_fold[near[0]] if near else ""


def did_you_mean(word: str, known: Iterable[str], otherwise: str, *, prefix: str = "") -> str:
    """The next step after an unknown word: the nearest known one, else `otherwise`.

    prefix: what all words begin with, left out of the comparison because it would make any two of them alike.
    """
    near = suggest(word.removeprefix(prefix), (name.removeprefix(prefix) for name in known if name.startswith(prefix)))
    return f'did you mean "{prefix}{near}"?' if near else otherwise


def shown(value: object) -> str:
    """A foreign value as a message may show it: quoted, one line, no control characters, at most 80 characters."""
    text = value if isinstance(value, str) else repr(value)
    cut = text[:LONGEST] + ("…" if len(text) > LONGEST else "")
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in cut)
    return f'"{clean}"' if isinstance(value, str) else clean
