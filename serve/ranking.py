"""Ranking: fuses what the lanes found by weighted reciprocal rank and settles near ties by the query's own words.

Pure functions over lane results. The score of a row is the sum of what each lane and the tie-breaker gave it:
each lane gives weight / all weights * (k + 1) / (k + rank), so 1 is the first place in every lane that took part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import msgspec

from serve.lanes.hits import Hits
from serve.text import tokens

K = 60  # the greater, the less the very first places count against agreement between lanes
POOL = 200  # rows asked of each lane
TIE_POOL = 60  # best fused rows that the tie-breaker looks at
TIE_WEIGHT = 0.1  # of a full score; what it gains is measured by benchmarks/evaluate.py
LANE_WEIGHTS = {"semantic": 1.0, "lexical": 1.0, "iwe": 0.25}  # a lane that is not named here counts 1
USED = "used"


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One lane's part in an answer: its hits, or None and the reason why it did not take part."""

    name: str
    hits: Hits | None = None
    reason: str = ""


class Place(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a lane put a row. rank: from 1. score: the lane's own. share: what the lane adds to the row's score."""

    rank: int
    score: float
    share: float


class Ranked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of an answer. score = base + tie; base = sum of the lanes' shares; tie = TIE_WEIGHT * lexical."""

    row: int
    score: float
    base: float
    tie: float = 0.0
    lexical: float = 0.0
    lanes: dict[str, Place]


class Described(msgspec.Struct, frozen=True, dict=True):
    """The texts of a row that the tie-breaker compares with the query."""

    name: str
    description: str
    tags: Sequence[str] = ()

    @cached_property
    def named(self) -> frozenset[str]:
        """The tokens of the name."""
        return frozenset(tokens(self.name))

    @cached_property
    def said(self) -> frozenset[str]:
        """The tokens of description and tags."""
        return frozenset(tokens("\n".join([self.description, *self.tags])))


def rank(
    query: str,
    lanes: Sequence[Lane],
    describe: Callable[[int], Described],
    *,
    limit: int,
    weights: dict[str, float] | None = None,
    min_rel: float = 0.0,
) -> list[Ranked]:
    """The answer to a query: fused, near ties settled, cut off under `min_rel` of the best. May be empty.

    describe: the texts of a row, called for at most TIE_POOL rows. limit: the most rows to give.
    """
    fused = fuse(lanes, weights=weights)
    return cutoff(settle(query, fused, describe), min_rel)[: max(limit, 0)]


def fuse(lanes: Sequence[Lane], *, weights: dict[str, float] | None = None, k: int = K) -> list[Ranked]:
    """Weighted reciprocal rank fusion of the lanes that took part, best first, equal scores by rising row."""
    weights = LANE_WEIGHTS if weights is None else weights
    taking = [(lane.name, lane.hits, weights.get(lane.name, 1.0)) for lane in lanes if lane.hits is not None]
    total = sum(weight for _name, _hits, weight in taking)
    places: dict[int, dict[str, Place]] = {}
    for name, hits, weight in taking:
        if weight <= 0:
            continue
        for at, (row, score) in enumerate(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True), start=1):
            share = weight / total * (k + 1) / (k + at)
            places.setdefault(row, {})[name] = Place(rank=at, score=score, share=share)
    out = []
    for row, found in places.items():
        base = sum(place.share for place in found.values())
        out.append(Ranked(row=row, score=base, base=base, lanes=found))
    return sorted(out, key=_order)


def settle(query: str, fused: Sequence[Ranked], describe: Callable[[int], Described]) -> list[Ranked]:
    """The rows with the tie-breaker added to the best TIE_POOL of them, in their new order."""
    words = frozenset(tokens(query))
    head = []
    for item in fused[:TIE_POOL]:
        lexical = overlap(words, describe(item.row))
        tie = TIE_WEIGHT * lexical
        head.append(msgspec.structs.replace(item, score=item.base + tie, tie=tie, lexical=lexical))
    return sorted(head, key=_order) + list(fused[TIE_POOL:])


def overlap(words: Collection[str], described: Described) -> float:
    """How much of the query stands in a skill's own words, from 0 to 1.3.

    0.6 for the share of the query's tokens that stand in the name, 0.4 for those in description or tags, and 0.3 more
    when the whole query stands in the name.
    """
    asked = frozenset(words)
    if not asked:
        return 0.0
    name, rest = asked & described.named, asked & described.said
    return 0.6 * len(name) / len(asked) + 0.4 * len(rest) / len(asked) + (0.3 if len(name) == len(asked) else 0.0)


def cutoff(ranked: Sequence[Ranked], min_rel: float) -> list[Ranked]:
    """The rows that score at least `min_rel` of the best one; 0 keeps all. Raises ValueError outside 0 to 1."""
    if not 0.0 <= min_rel <= 1.0:
        raise ValueError(f"min_rel must lie between 0 and 1, not {min_rel}")
    bar = min_rel * ranked[0].score if ranked else 0.0
    return [item for item in ranked if item.score >= bar]


def participation(lanes: Sequence[Lane]) -> dict[str, str]:
    """Each lane's name with "used" or the reason why it did not take part."""
    return {lane.name: USED if lane.hits is not None else lane.reason for lane in lanes}


def _order(item: Ranked) -> tuple[float, int]:
    return -item.score, item.row
