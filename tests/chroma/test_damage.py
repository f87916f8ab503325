"""A store whose files are broken: recognised, set aside, said, and written again; never a silent loss."""

from __future__ import annotations

import os
import shutil

import pytest

from pipeline.chroma import StoreDamagedError, StoreError, open_store, reconcile
from pipeline.chroma.faults import translate
from serve.errors import ExitCode, UnreachableError
from tests.chroma.support import EMBEDDER, keys, rows, vector, wanted

COUNT = 450  # more than HNSW keeps in memory, so that its files hold rows


def overwrite(path, offset=0, size=4_096):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(bytes(range(1, 256)) * (size // 255 + 1))


DAMAGE = {
    "the database is no database": lambda root: overwrite(root / "chroma.sqlite3"),
    "the database is cut off": lambda root: os.truncate(root / "chroma.sqlite3", 50_000),
    "the database is text": lambda root: (root / "chroma.sqlite3").write_text(
        "this is a text " * 100, encoding="utf-8"
    ),
    "the index folder is gone": lambda root: shutil.rmtree(index(root)),
    "the index is cut off": lambda root: os.truncate(index(root) / "data_level0.bin", 1_000),
    "the index is garbage": lambda root: overwrite(index(root) / "data_level0.bin", size=100_000),
    "the index's header is garbage": lambda root: overwrite(index(root) / "header.bin", size=90),
    "the index's names are gone": lambda root: (index(root) / "index_metadata.pickle").unlink(),
    "the index's names are garbage": lambda root: (index(root) / "index_metadata.pickle").write_bytes(b"hello"),
}


def index(root):
    return next(item for item in root.iterdir() if item.is_dir())


@pytest.fixture
def damaged(config, tmp_path):
    """A complete store, and a way to break it."""
    with open_store(config, EMBEDDER) as store:
        reconcile(store, wanted(keys(COUNT)), rows, "one")
    return lambda how: DAMAGE[how](tmp_path / "chroma")


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_store_is_set_aside_said_and_written_again(config, tmp_path, damaged, how):
    damaged(how)
    with open_store(config, EMBEDDER) as store:
        reconcile(store, wanted(keys(COUNT)), rows, "one")
        assert len(store.notices) == 1
        assert "begun anew" in store.notices[0]
        assert str(tmp_path / "chroma.damaged") in store.notices[0]
        assert (store.held(), store.stamp()) == (wanted(keys(COUNT)), "one")
        store.check()
        for key in keys(COUNT)[::50]:
            assert store.query(vector(key), 1)[0] == [key]
    assert (tmp_path / "chroma.damaged" / "chroma.sqlite3").is_file()


@pytest.mark.parametrize("how", DAMAGE)
def test_who_only_looks_gets_an_error_with_a_next_step_and_moves_nothing(config, tmp_path, damaged, how):
    damaged(how)
    with pytest.raises(StoreDamagedError) as caught:
        _look_at(config)
    assert caught.value.where == config.path
    assert "--rebuild-store" in caught.value.next_step
    assert not (tmp_path / "chroma.damaged").exists()


@pytest.mark.parametrize("how", ["an empty file", "no file"])
def test_a_lost_database_is_an_empty_store(config, tmp_path, damaged, how):
    database = tmp_path / "chroma" / "chroma.sqlite3"
    database.unlink() if how == "no file" else os.truncate(database, 0)
    with open_store(config, EMBEDDER) as store:
        assert store.held() == {}
        reconcile(store, wanted(keys(COUNT)), rows, "one")
        assert store.held() == wanted(keys(COUNT))
        store.check()


def test_only_the_last_damaged_store_is_kept(config, tmp_path, damaged):
    for _ in range(2):
        damaged("the database is text")
        with open_store(config, EMBEDDER) as store:
            reconcile(store, wanted(keys(COUNT)), rows, "one")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["chroma", "chroma.damaged"]


def _look_at(config):
    with open_store(config, EMBEDDER, repair=False) as store:
        store.check()
        store.held()


class _NamedError(Exception):
    """Stands for an exception of Chroma's or its HTTP client's: they are recognised by name."""


@pytest.mark.parametrize(
    ("name", "text", "kind", "code"),
    [
        ("ConnectError", "[Errno 111] Connection refused", UnreachableError, ExitCode.UNREACHABLE),
        ("ReadTimeout", "timed out", UnreachableError, ExitCode.UNREACHABLE),
        (
            "RemoteProtocolError",
            "Server disconnected without sending a response.",
            UnreachableError,
            ExitCode.UNREACHABLE,
        ),
        (
            "ValueError",
            "Could not connect to a Chroma server. Are you sure it is running?",
            UnreachableError,
            ExitCode.UNREACHABLE,
        ),
        ("ChromaAuthError", "Forbidden", StoreError, ExitCode.FAILED),
        ("NotFoundError", "Collection [x] does not exist.", StoreError, ExitCode.FAILED),
        ("InternalError", "error returned from database: (code: 5) database is locked", StoreError, ExitCode.LOCKED),
        ("InternalError", "error returned from database: (code: 517) database is locked", StoreError, ExitCode.LOCKED),
        (
            "InternalError",
            "error returned from database: (code: 13) database or disk is full",
            StoreError,
            ExitCode.FAILED,
        ),
        (
            "InternalError",
            "error returned from database: (code: 8) attempt to write a readonly database",
            StoreError,
            ExitCode.FAILED,
        ),
        ("InternalError", "File exists (os error 17)", StoreError, ExitCode.FAILED),
        (
            "InternalError",
            "error returned from database: (code: 11) database disk image is malformed",
            StoreDamagedError,
            ExitCode.FAILED,
        ),
        ("InternalError", "Error executing plan: Internal error: Error finding id", StoreDamagedError, ExitCode.FAILED),
        (
            "InvalidArgumentError",
            "Collection expecting embedding with dimension of 384, got 2",
            StoreDamagedError,
            ExitCode.FAILED,
        ),
        ("PanicException", "called `Option::unwrap()` on a `None` value", StoreDamagedError, ExitCode.FAILED),
        ("ModuleNotFoundError", "No module named 'chromadb'", StoreError, ExitCode.FAILED),
        ("TypeError", "something new", StoreError, ExitCode.FAILED),
    ],
)
def test_whatever_chroma_raises_becomes_one_error_of_ours(name, text, kind, code):
    base = ImportError if name == "ModuleNotFoundError" else _NamedError
    error = translate(type(name, (base,), {})(text), "/data/chroma")
    assert type(error) in {kind, *(sub for sub in kind.__subclasses__() if kind is StoreDamagedError)}
    assert (error.code, error.where) == (code, "/data/chroma")
    assert error.next_step


def test_a_foreign_servers_text_is_shown_short_and_without_control_sequences():
    error = translate(ValueError("\x1b[31mred\x1b[0m\n" * 200), "somewhere")
    assert "\x1b" not in error.what
    assert len(error.what) < 400
