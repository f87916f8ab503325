"""Embedded mode: speaking to the bindings and to the public client is the same, and cheap checks cost no import."""

from __future__ import annotations

import os
import shutil

import pytest

from pipeline.chroma import Store, bindings, collection_name, fingerprint, open_store, reconcile
from pipeline.chroma.embedded import EmbeddedBackend
from serve.errors import OperatorError
from tests.chroma.support import EMBEDDER, OTHER_EMBEDDER, assert_equal, folder, keys, python, rows, vector, wanted

# Opens, reads, writes, stamps and closes a store; prints which modules of Chroma that took.
SMALL_BUILD = """
import sys
from pipeline.chroma import ChromaConfig, fingerprint, open_store
config = ChromaConfig(namespace="mine", path=sys.argv[1])
fingerprint(config, sys.argv[2])
assert "numpy" not in sys.modules and "chromadb_rust_bindings" not in sys.modules
from tests.chroma.support import rows
with open_store(config, sys.argv[2]) as store:
    store.stamp(), store.held(), store.count()
    store.put(rows(["library:new"]))
    store.drop(["library:gone"])
    store.fetch(["library:new"]), store.check(), store.query(rows(["a"]).vectors[0], 2)
    store.set_stamp("s")
    store.retire()
print(store.notices, "chromadb" in sys.modules)
"""


def through_the_client(config, embedder=EMBEDDER):
    store = Store(
        EmbeddedBackend(config, prefer="client"), config.namespace, collection_name(config.namespace, embedder)
    )
    store.connect()
    return store


def everything(store):
    """All that can be read of a store."""
    ids = sorted(store.held())
    read = store.fetch(ids)
    near = [store.query(vector(key), 5) for key in ids[::9]]
    return ids, read.vectors.tobytes(), read.metadatas, read.documents, store.stamp(), store.count(), near


@pytest.mark.parametrize("first", ["bindings", "client"])
def test_what_one_engine_wrote_the_other_reads_to_the_last_bit_and_goes_on_writing(config, first):
    ids = keys(250)
    openers = [lambda: open_store(config, EMBEDDER), lambda: through_the_client(config)]
    writer, reader = openers if first == "bindings" else reversed(openers)
    with writer() as store:
        assert store.engine == first
        store.put(rows(ids))
        store.drop(ids[:3])
        store.set_stamp("one")
        own = everything(store)
    with reader() as store:
        assert store.engine != first
        assert everything(store) == own
        store.put(rows(ids[3:20], "2"))
        store.drop(ids[20:30])
        store.set_stamp("two")
        other = everything(store)
    with writer() as store:
        assert everything(store) == other
        assert store.held() == wanted(ids[30:]) | wanted(ids[3:20], "2")


def test_both_engines_make_the_same_collection(config, tmp_path):
    made = []
    for store in (open_store(config, EMBEDDER), through_the_client(folder(tmp_path / "other"))):
        with store:
            store.set_stamp("")
            made.append(
                store._engine._rust.list_collections(10, 0, *bindings._SCOPE)
                if store.engine == "bindings"
                else store._engine._client.list_collections()
            )
    ours, theirs = made[0][0], made[1][0]
    assert ours.configuration == theirs.configuration_json
    assert ours.schema == theirs._model.serialized_schema
    assert ours.metadata == theirs.metadata


def test_a_small_build_imports_neither_chromadb_nor_for_its_check_numpy(config):
    with open_store(config, EMBEDDER) as store:
        store.put(rows(keys(20)))
    process = python(SMALL_BUILD, config.path, EMBEDDER)
    said, errors = process.communicate(timeout=60)
    assert (process.returncode, said, errors) == (0, "[] False\n", "")


@pytest.mark.parametrize("name", ["_SHAPES", "VERSION"])
def test_bindings_of_another_version_are_left_alone_and_that_is_said(config, monkeypatch, name):
    other = {**bindings._SHAPES, "upsert": "collection_id ids"} if name == "_SHAPES" else "0.0.0"
    monkeypatch.setattr(bindings, name, other)
    with open_store(config, EMBEDDER) as store:
        assert store.engine == "client"
        assert len(store.notices) == 1
        assert "its public client is used" in store.notices[0]
        store.put(rows(keys(3)))
        assert store.held() == wanted(keys(3))


def test_the_installed_bindings_are_the_tested_ones():
    assert bindings.unfamiliar() == ""


def test_a_fingerprint_stays_while_nobody_writes_and_changes_with_every_write(config):
    assert fingerprint(config, EMBEDDER) is None
    seen = []
    for version in "123":
        with open_store(config, EMBEDDER) as store:
            store.put(rows(keys(2), version))
            store.set_stamp(version)
        seen.append(fingerprint(config, EMBEDDER))
        assert fingerprint(config, EMBEDDER) == seen[-1]
    assert len(set(seen)) == 3
    assert fingerprint(config, OTHER_EMBEDDER) not in seen


def test_opening_a_store_changes_its_fingerprint_and_reading_it_then_does_not(config):
    """Pins a quirk of Chroma: whoever opens a folder writes to its database, and so needs the writer lock."""
    with open_store(config, EMBEDDER) as store:
        store.put(rows(keys(300)))
        store.set_stamp("one")
    before = fingerprint(config, EMBEDDER)
    with open_store(config, EMBEDDER) as store:
        opened = fingerprint(config, EMBEDDER)
        assert opened != before
        store.held(), store.count(), store.inspect(whole=True)
    assert fingerprint(config, EMBEDDER) == opened


@pytest.mark.parametrize("touch", ["time", "size", "removed", "replaced", "added"])
def test_a_file_touched_by_another_hand_changes_the_fingerprint(config, touch, tmp_path):
    with open_store(config, EMBEDDER) as store:
        store.put(rows(keys(300)))
    before = fingerprint(config, EMBEDDER)
    victim = next((tmp_path / "chroma").glob("*/data_level0.bin"))
    stat = victim.stat()
    match touch:
        case "time":
            os.utime(victim, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))
        case "size":
            victim.write_bytes(victim.read_bytes() + b"x")
            os.utime(victim, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        case "removed":
            victim.unlink()
        case "replaced":
            other = shutil.copy2(victim, tmp_path / "copy")
            os.replace(other, victim)
        case "added":
            (victim.parent / "journal").touch()
    assert fingerprint(config, EMBEDDER) != before


def test_index_folders_of_removed_collections_are_swept(config, tmp_path):
    for embedder in (EMBEDDER, OTHER_EMBEDDER):
        with open_store(config, embedder) as store:
            store.put(rows(keys(300)))
            store.set_stamp("complete")
            store.retire()
            assert len([item for item in (tmp_path / "chroma").iterdir() if item.is_dir()]) == 1
    with open_store(config, OTHER_EMBEDDER) as store:
        assert_equal(store.fetch(keys(3)), rows(keys(3)))


def test_a_path_that_is_a_file_is_an_error_that_names_it(tmp_path):
    (tmp_path / "chroma").write_text("not a folder", encoding="utf-8")
    with pytest.raises(OperatorError) as caught:
        open_store(folder(tmp_path / "chroma"), EMBEDDER)
    assert caught.value.where == str(tmp_path / "chroma")
    assert caught.value.next_step
    assert (tmp_path / "chroma").read_text(encoding="utf-8") == "not a folder"


def test_a_folder_name_with_odd_characters_works(tmp_path):
    root = tmp_path / "a b?c#d%e ü"
    odd = folder(root)
    for embedder in (EMBEDDER, OTHER_EMBEDDER):
        with open_store(odd, embedder) as store:
            reconcile(store, wanted(keys(300)), rows, "s")
            assert store.collections() == [collection_name("mine", embedder)]
    assert len([item for item in root.iterdir() if item.is_dir()]) == 1
    assert list(tmp_path.iterdir()) == [root]
