"""Reconciling: exactly the difference is written, the stamp comes last, what cannot be used is begun anew."""

from __future__ import annotations

import contextlib
import random
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.chroma import StoreError, fingerprint, open_store, plan, reconcile
from tests.chroma.support import DIMENSION, EMBEDDER, OTHER_EMBEDDER, folder, keys, python, rows, vector, wanted

BUILD = """
import sys
from pipeline.chroma import open_store, reconcile
from tests.chroma.support import EMBEDDER, folder, keys, rows, wanted
with open_store(folder(sys.argv[1]), EMBEDDER) as store:
    reconcile(store, wanted(keys(int(sys.argv[2])), sys.argv[3]), lambda ids: rows(ids, sys.argv[3]), sys.argv[3])
print("finished")
"""
# Writes batch after batch, saying after each how many rows it has asked for; never ends by itself.
WRITER = """
import itertools, sys
from pipeline.chroma import open_store
from tests.chroma.support import EMBEDDER, folder, keys, rows
with open_store(folder(sys.argv[1]), EMBEDDER) as store:
    for number in itertools.count():
        store.put(rows(keys(70, 70 * number)))
        print(70 * (number + 1), flush=True)
"""


class Loader:
    """Gives rows and remembers which were asked for."""

    def __init__(self, version="1", dimension=DIMENSION):
        self.asked = []
        self._more = (version, dimension)

    def __call__(self, ids):
        self.asked += ids
        return rows(ids, *self._more)


def test_only_the_difference_is_loaded_and_written(config):
    ids = keys(20)
    with open_store(config, EMBEDDER) as store:
        reconcile(store, wanted(ids), Loader(), "one")
        loader = Loader("2")
        changed = wanted(ids[2:]) | wanted(ids[5:7], "2") | wanted(keys(1, 90), "2")
        outcome = reconcile(store, changed, loader, "two")
        assert outcome.plan == (tuple(ids[5:7] + keys(1, 90)), tuple(ids[:2]))
        assert loader.asked == list(outcome.plan.put)
        assert (store.held(), store.stamp()) == (changed, "two")


def test_what_is_there_already_is_left_alone_and_keeps_its_stamp(config):
    with open_store(config, EMBEDDER) as store:
        reconcile(store, wanted(keys(3)), Loader(), "one")
    before = fingerprint(config, EMBEDDER)
    with open_store(config, EMBEDDER) as store:
        loader = Loader()
        opened = fingerprint(config, EMBEDDER)
        assert not reconcile(store, wanted(keys(3)), loader, "one", held=wanted(keys(3))).plan
        assert loader.asked == []
    assert before != opened == fingerprint(config, EMBEDDER)


def test_what_is_said_to_be_held_is_believed_until_the_count_contradicts(config):
    with open_store(config, EMBEDDER) as store:
        reconcile(store, wanted(keys(4)), Loader(), "one")
        store.drop(keys(1))
        loader = Loader()
        reconcile(store, wanted(keys(5)), loader, "two", held=wanted(keys(4)))
        assert loader.asked == [*keys(1, 4), *keys(1)]
        assert store.held() == wanted(keys(5))


def test_rows_other_than_those_asked_for_are_refused(config):
    with open_store(config, EMBEDDER) as store:
        with pytest.raises(ValueError, match="not those that were asked for"):
            reconcile(store, wanted(keys(2)), lambda _ids: rows(keys(1)), "one")
        assert (store.held(), store.stamp()) == ({}, "")


def test_a_second_writer_is_noticed(config):
    with open_store(config, EMBEDDER) as store:

        def interfering(ids):
            store.put(rows(["foreign"]))
            return rows(ids)

        with pytest.raises(StoreError, match="holds 3 rows after 2 were written") as caught:
            reconcile(store, wanted(keys(2)), interfering, "one")
        assert store.stamp() == ""
        assert caught.value.next_step


def test_progress_is_told_batch_by_batch(config):
    done = []
    with open_store(config, EMBEDDER) as store:
        reconcile(store, wanted(keys(1_100)), Loader(), "one", advance=done.append)
    assert done == [500, 500, 100]


def test_rows_of_another_length_replace_the_whole_collection_and_that_is_said(config):
    with open_store(config, EMBEDDER) as store:
        reconcile(store, wanted(keys(4)), Loader(), "one")
        reconcile(store, wanted(keys(4)) | wanted(keys(1), "2"), Loader("1", 8), "two")
        assert store.count() == 4
        assert store.fetch(keys(1)).vectors.shape == (1, 8)
        assert len(store.notices) == 1
        assert "vectors of 16 numbers, the embedder gives 8" in store.notices[0]


def test_an_old_embedders_collection_goes_only_when_the_new_one_is_complete(config):
    with open_store(config, EMBEDDER) as store:
        reconcile(store, wanted(keys(2)), Loader(), "one")
    with open_store(config, OTHER_EMBEDDER) as store:
        with pytest.raises(RuntimeError):
            reconcile(store, wanted(keys(600)), _failing_after(500), "two")
        assert len(store.collections()) == 2
        assert len(reconcile(store, wanted(keys(600)), Loader(), "two").retired) == 1
        assert store.collections() == [store.name]


def _failing_after(count):
    loader = Loader()

    def load(ids):
        if len(loader.asked) >= count:
            raise RuntimeError("the memo is gone")
        return loader(ids)

    return load


contents = st.dictionaries(st.sampled_from(keys(6)), st.sampled_from("123"), max_size=6)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(contents, min_size=1, max_size=4))
def test_after_any_history_the_store_holds_what_was_wanted_last(tmp_path_factory, history):
    with open_store(folder(tmp_path_factory.mktemp("any") / "chroma"), EMBEDDER) as store:
        for number, content in enumerate(history):
            goal = {key: f"{key}-{version}" for key, version in content.items()}
            before = store.held()
            outcome = reconcile(
                store, goal, lambda ids, content=content: _mixed(ids, content), str(number), held=before
            )
            assert outcome.plan == plan(goal, before)
            assert (store.held(), store.stamp()) == (goal, str(number))
        for key in goal:
            assert store.query(vector(key), 1)[0] == [key]


def _mixed(ids, content):
    parts = [rows([key], content[key]) for key in ids]
    whole = rows(ids)
    for part, metadata in zip(parts, whole.metadatas, strict=True):
        metadata.update(part.metadatas[0])
    return whole


@pytest.mark.parametrize(
    ("point", "least"),
    [
        ("upsert-before-rows", 0),
        ("upsert-after-batch", 500),
        ("upsert-after-batch:2", 1_000),
        ("upsert-before-stamp", 1_200),
    ],
)
def test_a_build_killed_at_a_named_point_is_finished_by_the_next_one(config, point, least):
    killed = python(BUILD, config.path, "1200", "1", environment={"RETRIEVAL_KILL_AT": point})
    said, _errors = killed.communicate(timeout=120)
    assert (killed.returncode < 0, said) == (True, "")
    with open_store(config, EMBEDDER) as store:
        assert store.stamp() == ""
        assert len(store.held()) >= least
        loader = Loader()
        reconcile(store, wanted(keys(1_200)), loader, "1")
        assert len(loader.asked) == 1_200 - least
        _assert_complete(store, keys(1_200))


@pytest.mark.parametrize("seed", range(3))
def test_a_writer_killed_at_any_moment_leaves_rows_that_the_next_build_can_use(config, seed):
    _kill_and_recover(config, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 130))
def test_thirty_writers_killed_at_any_moment_leave_rows_that_the_next_build_can_use(config, seed):
    _kill_and_recover(config, seed)


def _kill_and_recover(config, seed):
    """Kill a writer somewhere after its n-th batch. Its finished batches are usable, or the store is known to be damaged."""
    chance = random.Random(seed)
    writer = python(WRITER, config.path)
    done = 0
    for _ in range(chance.randint(1, 12)):
        done = int(writer.stdout.readline())
    with contextlib.suppress(subprocess.TimeoutExpired):
        writer.wait(chance.uniform(0, 0.05))  # a moment within the next batches
    assert writer.poll() is None
    writer.kill()
    writer.communicate(timeout=30)
    with open_store(config, EMBEDDER) as store:
        loader = Loader()
        reconcile(store, wanted(keys(done)), loader, "all")
        if store.notices:  # Chroma's index does not survive every kill: then all is written again, and that is said
            assert "begun anew" in store.notices[0]
            assert loader.asked == keys(done)
        else:
            assert loader.asked == []
        _assert_complete(store, keys(done))


def _assert_complete(store, ids):
    assert store.held() == wanted(ids)
    store.check()
    for key in ids[:: max(1, len(ids) // 40)]:
        assert store.query(vector(key), 1)[0] == [key]
