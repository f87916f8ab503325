"""Manifests: sorted lines, written when they differ, and known again by their digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.engine import manifest
from pipeline.model import Keyed
from serve.errors import OperatorError


def rows(*names: str) -> list[Keyed]:
    return [Keyed(id=name, key="k", digest="d") for name in names]


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert manifest.store(path, rows("b", "a")) is True

    assert manifest.store(path, rows("a", "b")) is False
    assert [row.id for row in manifest.load(path, Keyed)] == ["a", "b"]
    assert [row.id for row in manifest.previous(path, Keyed)] == ["a", "b"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]\n", b'{"id":1}\n', b"\xff\xfe"])
def test_a_manifest_that_was_changed_is_not_reused(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "a.jsonl"
    manifest.store(path, rows("a", "b"))
    path.write_bytes(path.read_bytes()[:20] + damage)

    assert manifest.previous(path, Keyed) == []


def test_a_manifest_without_its_digest_is_not_reused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    manifest.store(path, rows("a"))
    next(tmp_path.glob("*.sum")).unlink()

    assert manifest.previous(path, Keyed) == []


def test_a_missing_or_damaged_input_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.jsonl", tmp_path / "bad.jsonl"):
        if path.name == "bad.jsonl":
            path.write_bytes(b"{nonsense\n")
        with pytest.raises(OperatorError) as error:
            manifest.load(path, Keyed)
        assert error.value.where == str(path)
        assert "retrieval build" in error.value.next_step


def test_a_replaced_manifest_is_decoded_again(tmp_path: Path) -> None:
    loaded = manifest.Loaded()
    path = tmp_path / "a.jsonl"
    manifest.store(path, rows("a"))
    first = loaded.load(path, Keyed)
    assert loaded.load(path, Keyed) is first
    manifest.store(path, rows("a", "b"))

    assert [row.id for row in loaded.load(path, Keyed)] == ["a", "b"]
