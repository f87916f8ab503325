from __future__ import annotations

import threading

import numpy as np
import pytest

from serve.embedder.parallel import available_cores, in_order


def _code(text):
    return np.array([float(len(text)), float(ord(text[0]))], dtype=np.float32)


@pytest.mark.parametrize("batch", [1, 2, 3, 8, 64])
def test_every_text_is_given_once_in_order_whatever_the_batch(batch):
    texts = [chr(97 + at % 26) * (at + 1) for at in range(21)]
    indices, rows = [], []
    for positions, vectors in in_order(texts, _code, batch=batch):
        assert 1 <= len(positions) <= batch
        indices += positions
        rows.append(vectors)
    assert indices == list(range(21))
    assert np.array_equal(np.concatenate(rows), np.stack([_code(text) for text in texts]))


def test_no_texts_give_no_batches():
    assert list(in_order([], _code, batch=4)) == []


@pytest.mark.parametrize("batch", [1, 2, 6, 32])
def test_no_more_than_one_batch_is_computed_beyond_what_was_asked_for(batch):
    seen = []
    lock = threading.Lock()

    def embed(text):
        with lock:
            seen.append(text)
        return _code(text)

    saved = 0
    for positions, _ in in_order(["text"] * 100, embed, batch=batch):
        assert len(seen) - saved <= batch
        saved += len(positions)
    assert saved == len(seen) == 100


def test_an_error_in_one_text_reaches_the_caller_after_the_batches_before_it():
    def embed(text):
        if text == "bad":
            raise ValueError(text)
        return _code(text)

    batches = in_order(["a"] * 8 + ["bad"] + ["b"] * 80, embed, batch=8)
    assert [next(batches)[0], next(batches)[0]] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(ValueError, match="bad"):
        next(batches)


def test_a_caller_that_stops_early_leaves_no_thread_behind():
    batches = in_order(["a"] * 50, _code, batch=4)
    next(batches)
    batches.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("embed")]


def test_at_least_one_core_is_available():
    assert available_cores() >= 1
