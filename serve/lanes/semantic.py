"""The semantic lane: exact cosine over the snapshot's matrix of vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serve.lanes.hits import NO_HITS, Hits, Mask, top
from serve.text import MAX_QUERY_CHARS, sentences, tokens

MAX_SENTENCES = 2
SENTENCE_CHARS = 160  # of a sentence its first words say what it is about


def parts(query: str) -> list[str]:
    """What to embed for a query: the whole, then its longest sentences in their order when it has more than one.

    An embedder reads the first hundred words or so; in a long task the matter often stands further down.
    """
    query = query[:MAX_QUERY_CHARS]
    found = sentences(query)
    if len(found) < 2:
        return [query]
    longest = sorted(range(len(found)), key=lambda i: (-len(frozenset(tokens(found[i]))), i))[:MAX_SENTENCES]
    return [query] + [found[i][:SENTENCE_CHARS] for i in sorted(longest)]


def search(matrix: NDArray[np.float32], vectors: NDArray[np.float32], count: int, mask: Mask | None = None) -> Hits:
    """The `count` rows nearest to a query, with their similarity (-1 to 1).

    matrix: float32[n, d] of unit vectors, may be memory-mapped. vectors: float32[m, d], the unit vectors of `parts`:
    similarity is the cosine with the whole query, averaged with the best cosine among its sentences if there are any.
    mask: bool[n], rows that may take part. Raises ValueError when the dimensions differ.
    """
    if matrix.ndim != 2 or vectors.ndim != 2 or vectors.shape[1] != matrix.shape[1] or not len(vectors):
        raise ValueError(f"query vectors of shape {vectors.shape} do not fit vectors of shape {matrix.shape}")
    if not len(matrix):
        return NO_HITS
    cosines = matrix @ vectors.T
    similarity = cosines[:, 0].astype(np.float64)
    if len(vectors) > 1:
        similarity = (similarity + cosines[:, 1:].max(axis=1)) / 2
    return top(similarity, count, mask=mask)
