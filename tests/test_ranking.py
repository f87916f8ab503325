"""Fusion, tie-breaker and cutoff: every score is the sum of named parts, and the order is the same each time."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve import ranking
from serve.lanes.hits import NO_HITS, Hits
from serve.ranking import Described, Lane


def hits(*rows: int) -> Hits:
    return Hits(np.array(rows, dtype=np.int64), np.linspace(1, 0.5, len(rows), dtype=np.float64))


def lane(name: str, *rows: int) -> Lane:
    return Lane(name=name, hits=hits(*rows))


def nameless(_row: int) -> Described:
    return Described("", "")


lanes_of_rows = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=20), min_size=1, max_size=3)


def test_the_first_place_in_every_lane_scores_one() -> None:
    fused = ranking.fuse([lane("semantic", 7, 3), lane("lexical", 7, 4)])

    assert (fused[0].row, fused[0].score) == (7, pytest.approx(1.0))
    assert {name: place.rank for name, place in fused[0].lanes.items()} == {"semantic": 1, "lexical": 1}


@pytest.mark.requirement("R026")
def test_shares_follow_weighted_reciprocal_rank() -> None:
    fused = ranking.fuse([lane("a", 1, 2), lane("b", 2)], weights={"a": 1.0, "b": 3.0}, k=60)
    by_row = {item.row: item for item in fused}

    assert by_row[1].base == pytest.approx(1 / 4)
    assert by_row[2].base == pytest.approx(1 / 4 * 61 / 62 + 3 / 4)
    assert by_row[2].lanes["a"].share == pytest.approx(1 / 4 * 61 / 62)
    assert by_row[2].lanes["a"].score == 0.5


def test_agreement_beats_one_first_place() -> None:
    assert next(iter(ranking.fuse([lane("a", 1, 2), lane("b", 3, 2)]))).row == 2


def test_equal_scores_are_ordered_by_row() -> None:
    assert [item.row for item in ranking.fuse([lane("a", 9, 8), lane("b", 5, 4)])] == [5, 9, 4, 8]


def test_a_lane_that_did_not_take_part_leaves_its_weight_to_the_others() -> None:
    lanes = [lane("semantic", 1), Lane(name="graph", reason="`iwe` is not installed")]

    assert ranking.fuse(lanes)[0].score == pytest.approx(1.0)
    assert ranking.participation(lanes) == {"semantic": "used", "graph": "`iwe` is not installed"}


def test_a_lane_that_found_nothing_did_take_part() -> None:
    lanes = [lane("semantic", 1), Lane(name="lexical", hits=NO_HITS)]

    assert ranking.fuse(lanes)[0].score == pytest.approx(0.5)
    assert ranking.participation(lanes)["lexical"] == "used"


def test_a_lane_of_no_weight_finds_nothing() -> None:
    assert [item.row for item in ranking.fuse([lane("a", 1), lane("b", 2)], weights={"b": 0.0})] == [1]


@pytest.mark.parametrize(
    ("query", "described", "expected"),
    [
        pytest.param("skill creator", Described("skill-creator", ""), 0.6 + 0.3, id="the whole query in the name"),
        pytest.param("skill creator", Described("skill-review", ""), 0.3, id="half of it in the name"),
        pytest.param("skill creator", Described("x", "A creator of things", ["skill"]), 0.4, id="description and tags"),
        pytest.param("fog map", Described("fog", "map and fog"), 0.3 + 0.4, id="name and description both count"),
        pytest.param("fog map", Described("jam", "kit"), 0.0, id="nothing in common"),
        pytest.param("the of", Described("the-of", "the of"), 0.0, id="stop words are no words"),
    ],
)
@pytest.mark.requirement("R216")
def test_the_tie_breaker_weighs_name_description_and_whole_query(
    query: str, described: Described, expected: float
) -> None:
    (item,) = ranking.settle(query, ranking.fuse([lane("a", 0)]), lambda _row: described)

    assert item.lexical == pytest.approx(expected)
    assert item.tie == pytest.approx(ranking.TIE_WEIGHT * expected)


def test_the_tie_breaker_settles_a_near_tie() -> None:
    described = {1: Described("astro", "sites"), 2: Described("create-skill", "makes a new skill")}
    answer = ranking.rank("create a new skill", [lane("a", 1, 2)], described.__getitem__, limit=5)

    assert [item.row for item in answer] == [2, 1]


def test_the_tie_breaker_cannot_lift_a_distant_row() -> None:
    rows = list(range(40))
    described = {row: Described("", "") for row in rows} | {39: Described("create-skill", "create skill")}
    answer = ranking.rank("create skill", [lane("a", *rows), lane("b", *rows)], described.__getitem__, limit=40)

    assert answer[0].row == 0


def test_texts_are_asked_for_only_where_they_can_matter() -> None:
    asked: list[int] = []

    def describe(row: int) -> Described:
        asked.append(row)
        return Described("", "")

    rows = range(ranking.POOL)
    answer = ranking.rank("fog", [lane("a", *rows)], describe, limit=ranking.POOL)

    assert asked == list(rows)[: ranking.TIE_POOL]
    assert [item.row for item in answer] == list(rows)


@given(lanes_of_rows, st.lists(st.sampled_from(["fog", "map", "jam"]), max_size=4).map(" ".join), st.integers(0, 9))
def test_every_score_is_the_sum_of_its_parts_and_the_order_is_by_score(
    found: list[list[int]], query: str, limit: int
) -> None:
    lanes = [lane(f"lane {number}", *rows) for number, rows in enumerate(found)]
    texts = {row: Described(("fog", "map fog", "jam")[row % 3], "map") for row in range(31)}
    full = ranking.rank(query, lanes, texts.__getitem__, limit=1_000)

    for item in full:
        assert item.base == pytest.approx(sum(place.share for place in item.lanes.values()))
        assert item.score == pytest.approx(item.base + item.tie)
    assert {item.row for item in full} == {row for rows in found for row in rows}
    assert full == sorted(full, key=lambda item: (-item.score, item.row))
    assert ranking.rank(query, lanes, texts.__getitem__, limit=limit) == full[:limit]


@given(lanes_of_rows, st.floats(0, 1))
def test_the_cutoff_keeps_what_scores_its_share_of_the_best(found: list[list[int]], min_rel: float) -> None:
    full = ranking.fuse([lane(f"lane {number}", *rows) for number, rows in enumerate(found)])
    kept = ranking.cutoff(full, min_rel)

    assert kept == [item for item in full if item.score >= min_rel * full[0].score]
    assert ranking.cutoff(full, 0) == full


@pytest.mark.parametrize("min_rel", [-0.1, 1.1, float("nan")])
def test_a_cutoff_outside_its_range_is_refused(min_rel: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        ranking.cutoff([], min_rel)


def test_an_answer_may_be_empty() -> None:
    assert ranking.rank("fog", [Lane(name="lexical", hits=NO_HITS)], nameless, limit=5) == []
    assert ranking.rank("fog", [Lane(name="lexical", reason="off")], nameless, limit=5) == []
    assert ranking.rank("fog", [], nameless, limit=5) == []


def test_a_row_can_be_shown_as_json() -> None:
    (item,) = ranking.fuse([lane("semantic", 3)])

    assert msgspec.json.decode(msgspec.json.encode(item)) == {
        "row": 3,
        "score": 1.0,
        "base": 1.0,
        "tie": 0.0,
        "lexical": 0.0,
        "lanes": {"semantic": {"rank": 1, "score": 1.0, "share": 1.0}},
    }
