"""The lexical lane: exact BM25F over the skills' words, counted by field.

A term's weight in a skill grows with its counts, each field by its own weight and corrected for the field's length
against the average of the skills that have the field; it saturates once, over all fields together.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from serve.contract import LEXICAL_FIELDS
from serve.lanes.hits import NO_HITS, Hits, Mask, Scores, top
from serve.text import MAX_QUERY_CHARS, term_hash, tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from serve.lanes.postings import Array, Arrays

# Field by field in the order of LEXICAL_FIELDS: weight, and how much of the length counts (0 none, 1 all of it).
WEIGHTS = (3.0, 3.0, 3.0, 1.0, 1.0, 0.5)
LENGTHS = (0.5, 0.75, 0.75, 0.75, 0.75, 0.75)
K1 = 1.2
MAX_TERMS = 40  # of a longer query the terms that weigh most are kept: rarity finds the matter of a long task


class Contribution(NamedTuple):
    """What one term of the query adds to one skill's score. counts: its count in each field."""

    term: str
    score: float
    idf: float
    repeats: int
    counts: tuple[int, ...]


class _Term(NamedTuple):
    token: str
    place: int  # in `terms`
    idf: float
    repeats: int


class LexicalIndex:
    """A view of the arrays of `serve.lanes.postings`, which may be memory-mapped: nothing is copied but the lengths."""

    def __init__(
        self,
        arrays: Arrays,
        *,
        weights: tuple[float, ...] = WEIGHTS,
        lengths: tuple[float, ...] = LENGTHS,
        k1: float = K1,
    ) -> None:
        self._terms = arrays["terms"]
        self._indptr = arrays["indptr"]
        self._docs = arrays["docs"]
        self._tf = arrays["tf"]
        self._k1 = k1
        self._scale = _scale(arrays["lengths"], weights, lengths)

    def __len__(self) -> int:
        return len(self._scale)

    def search(self, query: str, count: int, mask: Mask | None = None) -> Hits:
        """The `count` best rows for the query. mask: bool[n], rows that may take part. Rows without any term never do."""
        terms = self._known(query)
        return top(self._scores(terms), count, above=0.0, mask=mask) if terms else NO_HITS

    def explain(self, query: str, row: int) -> list[Contribution]:
        """What each term adds to a row's score, the greatest first; the sum is the score up to rounding."""
        out = []
        for term in self._known(query):
            start, end = self._indptr[term.place], self._indptr[term.place + 1]
            at = start + np.searchsorted(self._docs[start:end], row)
            if at < end and self._docs[at] == row:
                score = float(self._weigh([term], self._docs[at : at + 1], self._tf[at : at + 1], [1])[0])
                out.append(Contribution(term.token, score, term.idf, term.repeats, tuple(map(int, self._tf[at]))))
        return sorted(out, key=lambda found: (-found.score, found.term))

    def _known(self, query: str) -> list[_Term]:
        """The query's terms that the index holds, in the order of their hashes, at most MAX_TERMS."""
        counted = Counter(tokens(query[:MAX_QUERY_CHARS]))
        if not counted or not len(self._terms):
            return []
        words = {term_hash(token): token for token in counted}
        hashes = np.array(sorted(words), dtype=np.uint64)
        places = np.searchsorted(self._terms, hashes)
        found: list[_Term] = []
        for term, place in zip(hashes.tolist(), places.tolist(), strict=True):
            if place < len(self._terms) and self._terms[place] == term:
                holding = int(self._indptr[place + 1] - self._indptr[place])
                idf = float(np.log1p((len(self) - holding + 0.5) / (holding + 0.5)))
                found.append(_Term(words[term], place, idf, counted[words[term]]))
        if len(found) > MAX_TERMS:
            dear = sorted(range(len(found)), key=lambda i: (-found[i].idf * _repeated(found[i].repeats), i))[:MAX_TERMS]
            found = [found[i] for i in sorted(dear)]
        return found

    def _scores(self, terms: list[_Term]) -> Scores:
        """The score of every row: float64[n], 0 where no term stands."""
        spans = [slice(self._indptr[term.place], self._indptr[term.place + 1]) for term in terms]
        docs = np.concatenate([self._docs[span] for span in spans])
        tf = np.concatenate([self._tf[span] for span in spans])
        added = self._weigh(terms, docs, tf, [span.stop - span.start for span in spans])
        return np.bincount(docs, weights=added, minlength=len(self)).astype(np.float64, copy=False)

    def _weigh(self, terms: list[_Term], docs: Array, tf: Array, sizes: list[int]) -> Scores:
        """What each posting adds. sizes: number of postings of each term."""
        weighed = tf * np.take(self._scale, docs, axis=0)
        # Column by column: equal skills must get equal scores to the last bit, which a matrix product does not promise.
        weight = weighed[:, 0].copy()
        for field in range(1, weighed.shape[1]):
            weight += weighed[:, field]
        gain = np.repeat([term.idf * _repeated(term.repeats) for term in terms], sizes)
        added: Scores = gain * (weight * (self._k1 + 1) / (weight + self._k1))
        return added


def _repeated(count: int) -> float:
    """How much a word counts that the query says several times."""
    return 1.0 + float(np.log(count))


def _scale(lengths: Array, weights: tuple[float, ...], shares: tuple[float, ...]) -> NDArray[np.float32]:
    """The factor of each count: weight of the field over its normalised length. float32[n, F]."""
    sizes = lengths.astype(np.float64)
    having = np.maximum((sizes > 0).sum(axis=0), 1)
    average = np.maximum(sizes.sum(axis=0) / having, 1.0)
    share = np.asarray(shares)
    scale: NDArray[np.float32] = (np.asarray(weights) / (1.0 - share + share * sizes / average)).astype(np.float32)
    return scale


def fields(values: tuple[int, ...]) -> Mapping[str, int]:
    """Counts of a `Contribution` by the name of their field."""
    return dict(zip(LEXICAL_FIELDS, values, strict=True))
