"""The semantic lane: exact, filtered, and fair to long queries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.lanes import semantic


def units(rows: list[list[float]]) -> np.ndarray:
    array = np.array(rows, dtype=np.float32)
    return array / np.linalg.norm(array, axis=1, keepdims=True)


MATRIX = units([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])


def test_rows_come_by_cosine_and_equal_ones_by_row() -> None:
    hits = semantic.search(MATRIX, units([[1, 0.9, 0]]), 3)

    assert hits.rows.tolist() == [1, 4, 0]
    assert hits.scores == pytest.approx(MATRIX[[1, 4, 0]] @ units([[1, 0.9, 0]])[0])


def test_a_filter_leaves_rows_out() -> None:
    mask = np.array([True, False, True, True, False])

    assert semantic.search(MATRIX, units([[1, 0.9, 0]]), 2, mask).rows.tolist() == [0, 2]
    assert len(semantic.search(MATRIX, units([[1, 0, 0]]), 2, np.zeros(5, dtype=np.bool_)).rows) == 0


def test_a_row_is_as_near_as_the_whole_query_and_its_best_sentence() -> None:
    hits = semantic.search(MATRIX, units([[1, 0, 0], [0, 1, 0], [0, 0, 1]]), 5)
    scores = dict(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True))

    assert scores == pytest.approx({0: 0.5, 1: 2**-0.5, 2: 0.5, 3: 0.5, 4: 2**-0.5})


@settings(deadline=None)
@given(st.integers(0, 30), st.integers(1, 8), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_the_answer_equals_a_full_sort(rows: int, dimension: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-2, 3, (rows, dimension)).astype(np.float32)  # small integers: many exact ties
    query = rng.integers(-2, 3, (1, dimension)).astype(np.float32)
    cosines = (matrix @ query[0]).tolist()

    assert (
        semantic.search(matrix, query, count).rows.tolist()
        == sorted(range(rows), key=lambda row: (-cosines[row], row))[:count]
    )


def test_no_skills_give_no_hits() -> None:
    assert len(semantic.search(np.empty((0, 3), dtype=np.float32), units([[1, 0, 0]]), 5).rows) == 0


@pytest.mark.parametrize("shape", [(1, 2), (0, 3), (3,)])
def test_vectors_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        semantic.search(MATRIX, np.ones(shape, dtype=np.float32), 5)


def test_a_short_query_is_embedded_whole() -> None:
    assert semantic.parts("rotate the pages of a PDF") == ["rotate the pages of a PDF"]


def test_a_long_query_adds_its_longest_sentences_in_their_order() -> None:
    lines = [
        "Hello there friend team.",
        *(f"{'Parse many different log files ' * number}today." for number in range(1, 7)),
    ]
    query = " ".join(lines)
    found = semantic.parts(query)

    assert found[0] == query
    assert len(found) == 1 + semantic.MAX_SENTENCES
    assert all(len(text) <= semantic.SENTENCE_CHARS for text in found[1:])
    assert [lines.index(line) for text in found[1:] for line in lines if line.startswith(text)] == sorted(
        lines.index(line) for text in found[1:] for line in lines if line.startswith(text)
    )
    assert "Hello there friend team." not in found


def test_a_query_of_any_length_is_bounded() -> None:
    assert sum(map(len, semantic.parts("measure the disk usage now. " * 100_000))) < 25_000
