"""What a lane answers: rows in their order with the lane's own scores, and the one rule by which rows are ordered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Hits(NamedTuple):
    """Rows of the snapshot, best first, and the lane's score of each. Both have the same length."""

    rows: Rows
    scores: Scores


NO_HITS = Hits(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))


def top(scores: Scores, count: int, *, above: float = -np.inf, mask: Mask | None = None) -> Hits:
    """The `count` best rows with a score over `above`, by falling score, equal scores by rising row.

    scores: float64[n], one per row of the snapshot. mask: bool[n]; rows where it is false do not take part.
    """
    taking = scores > above
    if mask is not None:
        taking &= mask
    rows = np.flatnonzero(taking)
    if count <= 0 or not len(rows):
        return NO_HITS
    kept = scores[rows]
    if len(rows) > count:
        bar = np.partition(kept, -count)[-count]
        inside = kept >= bar  # with every row that equals the last one: the order below decides among them
        rows, kept = rows[inside], kept[inside]
    order = np.lexsort((rows, -kept))[:count]
    return Hits(rows[order].astype(np.int64, copy=False), kept[order])
