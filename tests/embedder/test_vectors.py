from __future__ import annotations

import numpy as np
import pytest

from serve.embedder.vectors import MAX_CHARS, bounded, unit_rows
from serve.errors import EmbedderError


def test_rows_become_float32_of_norm_one():
    rows = unit_rows([[3.0, 4.0], [0.0, -2.0]], dimension=2, where="here")
    assert rows.dtype == np.float32
    assert rows.tolist() == [[np.float32(0.6), np.float32(0.8)], [0.0, -1.0]]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ([[1.0, float("nan")]], "not finite"),
        ([[1.0, float("inf")]], "not finite"),
        ([[1e300, 1e300]], "not finite"),
        ([[0.0, 0.0]], "zeros"),
        ([[1.0, 0.0], [0.0, 0.0]], "zeros"),
        ([[1.0, 2.0, 3.0]], "3 numbers where 2 are expected"),
        ([1.0, 2.0], "one vector a text"),
        ([[], []], "one vector a text"),
    ],
)
def test_what_is_no_direction_is_refused(raw, says):
    with pytest.raises(EmbedderError, match=says) as caught:
        unit_rows(raw, dimension=2, where="the model")
    assert caught.value.where == "the model"
    assert caught.value.next_step


def test_any_length_is_taken_where_none_is_expected():
    assert unit_rows([[1.0, 2.0, 3.0]], dimension=None, where="").shape == (1, 3)


def test_a_text_is_cut_and_freed_of_lone_surrogates():
    assert bounded("a\ud800b") == "a?b"
    assert len(bounded("x" * 1_000_000)) == MAX_CHARS
