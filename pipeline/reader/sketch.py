"""Digest and sketch of a body: the one tells equal texts, the other how alike two texts are."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from blake3 import blake3

SKETCH_SIZE = 64
SHINGLE_WORDS = 4
SKETCHED_CHARS = 262_144  # of a body: keeps the arrays small, and a longer text is told by its start

_PLACES = 64  # letters of a word with a weight of their own; longer words start again
_SPACE = 0x20
_Words = np.ndarray[Any, np.dtype[np.uint64]]


def fold(body: str) -> str:
    """`body` in one case and with every run of white space as one space."""
    return " ".join(body.casefold().split())


def digest(folded: str) -> str:
    """blake3 hex of a folded body."""
    return blake3(folded.encode("utf-8", "surrogatepass")).hexdigest()


def sketch(folded: str) -> tuple[int, ...]:
    """The 64 smallest of the 63-bit hashes of a folded body's runs of 4 words, ascending; fewer for a short body.

    The share of common hashes among the smallest of both estimates how much two bodies have in common. The same on
    every machine. A body of less than 4 words has one run, an empty one none.
    """
    if not folded:
        return ()
    hashes = _word_hashes(folded[:SKETCHED_CHARS].rstrip())
    if len(hashes) >= SHINGLE_WORDS:
        last = len(hashes) - SHINGLE_WORDS + 1
        weights = _table("shingle", SHINGLE_WORDS)
        hashes = sum((hashes[i : last + i] * weights[i] for i in range(1, SHINGLE_WORDS)), hashes[:last] * weights[0])
    else:
        hashes = np.array([np.bitwise_xor.reduce(hashes * np.arange(1, len(hashes) + 1, dtype=np.uint64))])
    return tuple(_smallest(_mixed(hashes) >> np.uint64(1)).tolist())


def _word_hashes(folded: str) -> _Words:
    """One 64-bit hash a word, computed on all bytes at once: the sum of each byte's value times its place's weight."""
    data = np.frombuffer(folded.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    spaces = np.flatnonzero(data == _SPACE)
    starts = np.concatenate((np.zeros(1, dtype=np.intp), spaces + 1))
    lengths = np.diff(starts, append=len(data) + 1)
    place = np.arange(len(data), dtype=np.intp) - np.repeat(starts, lengths)[: len(data)]
    values = _table("byte", 256)[data] * _table("place", _PLACES)[place % _PLACES]
    values[spaces] = 0
    return _mixed(np.add.reduceat(values, starts))


def _mixed(values: _Words) -> _Words:
    """Each value's bits spread over all 64 (the finisher of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _smallest(hashes: _Words) -> _Words:
    some = SKETCH_SIZE * 4
    if len(hashes) > some:
        # Sorting everything costs more than all hashing; only a body that repeats itself needs the full look.
        few = np.unique(np.partition(hashes, some)[:some])
        if len(few) >= SKETCH_SIZE:
            return few[:SKETCH_SIZE]
    return np.unique(hashes)[:SKETCH_SIZE]


@cache
def _table(name: str, size: int) -> _Words:
    """`size` odd 64-bit numbers that depend on nothing but `name`."""
    raw = blake3(name.encode()).digest(length=8 * size)
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64) | np.uint64(1)
