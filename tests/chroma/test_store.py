"""The store's operations, the same on an embedded folder (both engines) and on a real server."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.chroma import Store, StoreDamagedError, collection_name, open_store
from pipeline.chroma.embedded import EmbeddedBackend
from serve.errors import EmbedderError
from tests.chroma.support import DIMENSION, EMBEDDER, OTHER_EMBEDDER, assert_equal, keys, rows, vector, wanted


@pytest.fixture(params=["bindings", "client", "server"])
def opened(request, config, namespace):
    """Opens the same store again and again; the store of each call must be closed before the next."""
    if request.param == "bindings":
        return lambda embedder=EMBEDDER: open_store(config, embedder)
    if request.param == "server":
        reachable = request.getfixturevalue("server").config(namespace)
        return lambda embedder=EMBEDDER: open_store(reachable, embedder)

    def with_the_public_client(embedder=EMBEDDER):
        backend = EmbeddedBackend(config, prefer="client")
        store = Store(backend, config.namespace, collection_name(config.namespace, embedder))
        store.connect()
        return store

    return with_the_public_client


def test_a_store_that_was_never_written_holds_nothing_and_makes_no_collection(opened):
    with opened() as store:
        assert store.held() == {}
        assert store.count() == 0
        assert store.stamp() == ""
        assert store.query(vector("a"), 3) == ([], [])
        assert len(store.fetch(["a"])) == 0
        store.drop(["a"])
        store.check()
        assert store.collections() == []


def test_rows_come_back_as_they_were_written(opened):
    ids = keys(30)
    with opened() as store:
        store.put(rows(ids))
    with opened() as store:
        assert store.held() == wanted(ids)
        assert store.count() == 30
        assert_equal(store.fetch(ids), rows(ids))
        store.check()


def test_rows_come_in_the_order_asked_for_and_missing_ones_are_left_out(opened):
    ids = keys(9)
    with opened() as store:
        store.put(rows(ids))
        assert_equal(store.fetch([ids[7], "missing", ids[2]]), rows([ids[7], ids[2]]))


def test_a_vector_finds_its_own_row_at_distance_nothing(opened):
    ids = keys(40)
    with opened() as store:
        store.put(rows(ids))
        for key in ids[::7]:
            found, distances = store.query(vector(key), 3)
            assert found[0] == key
            assert abs(distances[0]) < 1e-5
            assert distances == sorted(distances)


def test_writing_an_id_again_replaces_its_row(opened):
    ids = keys(5)
    with opened() as store:
        store.put(rows(ids))
        store.put(rows(ids[:2], "2"))
        assert store.held() == wanted(ids) | wanted(ids[:2], "2")
        assert_equal(store.fetch(ids[:2]), rows(ids[:2], "2"))


def test_removed_rows_are_gone_and_unknown_ones_ignored(opened):
    ids = keys(6)
    with opened() as store:
        store.put(rows(ids))
        store.drop([*ids[:2], "unknown"])
        assert store.held() == wanted(ids[2:])
        assert store.query(vector(ids[0]), 1)[0] != [ids[0]]


def test_the_stamp_goes_with_the_first_write_and_comes_with_the_last(opened):
    with opened() as store:
        store.put(rows(keys(2)))
        assert store.stamp() == ""
        store.set_stamp("all of it")
    with opened() as store:
        assert store.stamp() == "all of it"
        store.put(rows(keys(1), "2"))
        assert store.stamp() == ""
    with opened() as store:
        assert store.stamp() == ""
        store.set_stamp("again")
        store.drop(keys(1))
        assert store.stamp() == ""


def test_an_empty_store_can_be_stamped(opened):
    with opened() as store:
        store.set_stamp("nothing wanted")
    with opened() as store:
        assert (store.stamp(), store.count()) == ("nothing wanted", 0)


def test_another_embedder_has_a_collection_of_its_own_and_the_old_one_goes_when_it_is_complete(opened):
    with opened() as store:
        store.put(rows(keys(3)))
        store.set_stamp("one")
        old = store.name
    with opened(OTHER_EMBEDDER) as store:
        assert store.held() == {}
        store.put(rows(keys(2), dimension=DIMENSION * 2))
        assert store.retire() == ()
        assert store.collections() == sorted([old, store.name])
        store.set_stamp("two")
        assert store.retire() == (old,)
        assert store.collections() == [store.name]
        assert store.held() == wanted(keys(2))


def test_vectors_of_another_length_are_refused_before_anything_is_written(opened):
    ids = keys(2)
    with opened() as store:
        store.put(rows(ids))
        store.set_stamp("one")
    with opened() as store:
        with pytest.raises(StoreDamagedError, match="vectors of 16 numbers, the embedder gives 8"):
            store.put(rows(ids, "2", dimension=8))
        assert (store.held(), store.stamp()) == (wanted(ids), "one")


def test_a_vector_that_is_no_number_is_the_embedders_fault(opened):
    bad = rows(keys(2))
    bad.vectors[1, 3] = np.nan
    with opened() as store:
        with pytest.raises(EmbedderError, match="not a number"):
            store.put(bad)
        assert store.held() == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made.metadatas[1].pop("name"), "same metadata keys"),
        (lambda made: made.metadatas[1].update(tags=[]), "none of them empty"),
        (lambda made: made.metadatas[1].update(name=None), "none of them empty"),
        (lambda made: made.documents.pop(), "equally long"),
        (lambda made: made.ids.__setitem__(1, made.ids[0]), "stands twice"),
    ],
    ids=["a key is missing", "an empty list", "no value", "a document is missing", "an ID twice"],
)
def test_rows_that_chroma_would_half_accept_are_refused(config, change, message):
    made = rows(keys(3))
    change(made)
    with open_store(config, EMBEDDER) as store:
        with pytest.raises(ValueError, match=message):
            store.put(made)
        assert store.held() == {}


def test_texts_of_every_kind_come_back_unchanged(opened):
    texts = [
        "",
        " \t trailing \n\n",
        "a\r\nb\r",
        "nul \0 in it",
        "\ufeffbom",
        "\u2028 \u2029 \x85",
        "\U0001f469\u200d\U0001f4bb",
        "x" * 300_000,
    ]
    made = rows([f"id {number}: {text[:20]}" for number, text in enumerate(texts)])
    for metadata, text in zip(made.metadatas, texts, strict=True):
        metadata["name"] = text
        metadata["tags"] = [text, text]
    made = type(made)(made.ids, made.vectors, made.metadatas, texts)
    with opened() as store:
        store.put(made)
        assert_equal(store.fetch(made.ids), made)


def test_chroma_keeps_metadata_keys_that_an_upsert_leaves_out(config):
    """Pins the quirk for which every row carries every key."""
    with open_store(config, EMBEDDER) as store:
        engine, collection = store._engine, store._writing()
        one = rows(["a"])
        engine.put(collection, one)
        engine.put(collection, type(one)(one.ids, one.vectors, [{"name": "new"}], one.documents))
        assert store.fetch(["a"]).metadatas == [{"name": "new", "tags": ["a", "1"], "row_key": "a-1"}]


def test_a_list_is_replaced_whole_and_not_merged(config):
    made = rows(["a"])
    with open_store(config, EMBEDDER) as store:
        made.metadatas[0]["tags"] = ["one", "two", "three"]
        store.put(made)
        made.metadatas[0]["tags"] = ["two"]
        store.put(made)
        assert store.fetch(["a"]).metadatas[0]["tags"] == ["two"]


def test_more_rows_than_a_page_or_a_batch_holds_are_written_and_listed_completely(opened, request):
    ids = keys(6_000 if "bindings" in request.node.name else 2_300)
    with opened() as store:
        store.put(rows(ids))
        assert store.held() == wanted(ids)
        assert sum(len(page) for page in store.rows()) == len(ids)
        store.drop(ids[1_000:])
        assert store.held() == wanted(ids[:1_000])
