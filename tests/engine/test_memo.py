"""The memo: what was put is got, all of a batch or none of it, and damage is a miss."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engine.files import key
from pipeline.engine.memo import Memo


@pytest.fixture
def memo(tmp_path: Path) -> Memo:
    return Memo(tmp_path / "memo.sqlite3")


@given(value=st.binary(max_size=3000))
def test_any_value_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: bytes) -> None:
    memo = Memo(tmp_path_factory.mktemp("m") / "memo.sqlite3")
    memo.put("scan", [(key(value), value)])

    assert memo.get("scan", [key(value)]) == {key(value): value}


def test_more_keys_than_one_statement_takes_are_found(memo: Memo) -> None:
    pairs = [(key(str(number)), str(number).encode()) for number in range(1201)]
    memo.put("terms", pairs)

    assert memo.get("terms", [name for name, _ in pairs]) == dict(pairs)
    assert memo.has("terms", [name for name, _ in pairs] + [key("absent")]) == {name for name, _ in pairs}


def test_steps_do_not_share_values(memo: Memo) -> None:
    memo.put("scan", [(key("a"), b"1")])

    assert memo.get("terms", [key("a")]) == {}


def test_a_batch_that_fails_leaves_nothing(memo: Memo) -> None:
    refused = key("b")
    memo.connection.execute(
        f"CREATE TRIGGER no BEFORE INSERT ON scan WHEN NEW.key = x'{refused}' BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(sqlite3.IntegrityError):
        memo.put("scan", [(key("a"), b"1"), (refused, b"2")])

    assert memo.get("scan", [key("a"), refused]) == {}
    memo.put("scan", [(key("c"), b"3")])
    assert memo.get("scan", [key("c")]) == {key("c"): b"3"}


def test_a_damaged_value_is_a_miss_and_is_counted(memo: Memo) -> None:
    memo.put("scan", [(key("a"), b"value"), (key("b"), b"other")])
    memo.connection.execute("UPDATE scan SET value = x'00112233445566778899' WHERE key = ?", [bytes.fromhex(key("a"))])

    assert memo.get("scan", [key("a"), key("b")]) == {key("b"): b"other"}
    assert memo.damaged == 1


def test_a_value_that_was_put_under_another_key_is_a_miss(memo: Memo) -> None:
    memo.put("scan", [(key("a"), b"value")])
    memo.connection.execute("UPDATE scan SET key = ?", [bytes.fromhex(key("b"))])

    assert memo.get("scan", [key("b")]) == {}


def test_a_file_that_is_no_database_is_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "memo.sqlite3"
    path.write_bytes(b"no database at all" * 400)
    memo = Memo(path)

    memo.put("scan", [(key("a"), b"1")])

    assert memo.get("scan", [key("a")]) == {key("a"): b"1"}
    assert memo.moved_aside is not None
    assert memo.moved_aside.read_bytes().startswith(b"no database")


def test_a_value_kept_in_another_form_is_a_miss(memo: Memo, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("pipeline.engine.memo._FORM", b"squeezed-1")
        memo.put("scan", [(key("a"), b"value")])

    assert memo.get("scan", [key("a")]) == {}
