"""Files: atomic or absent, and left alone when nothing would change."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.engine import files


def test_an_equal_file_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.txt"
    assert files.write(path, b"one") is True
    before = path.stat().st_ino

    assert files.write(path, b"one") is False
    assert path.stat().st_ino == before
    assert files.write(path, b"two") is True
    assert path.read_bytes() == b"two"


def test_a_write_that_fails_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "b.txt"
    files.write(path, b"one")

    def fail() -> None:
        with files.replacing(path) as part:
            part.write_bytes(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_parts_of_killed_writers_are_swept(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / f"{files.PART}1234-x").write_bytes(b"half")
    files.write(tmp_path / "deep" / "kept", b"whole")

    assert files.sweep_parts(tmp_path) == 1
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["kept"]


def test_a_key_tells_lists_of_parts_apart(tmp_path: Path) -> None:
    keys = {files.key("ab", "c"), files.key("a", "bc"), files.key("abc"), files.key("abc", ""), files.key()}

    assert len(keys) == 5


def test_a_replaced_file_is_hashed_again(tmp_path: Path) -> None:
    digests = files.Digests()
    path = tmp_path / "a"
    files.write(path, b"one")
    first = digests.of(path)
    files.write(path, b"two")

    assert (first, digests.of(path)) == (files.digest(b"one"), files.digest(b"two"))
