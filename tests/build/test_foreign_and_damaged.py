"""What is not ours is left alone, and what was ours and got damaged is noticed, told from what is merely out of reach, and mended."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from pipeline.engine import generation
from pipeline.engine.lineage import Change, Lineage
from pipeline.engine.memo import Memo
from tests.world import World

pytestmark = pytest.mark.long


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.library()
    return made


def flip(path: Path) -> None:
    """Change one byte in the middle and put the file's times back."""
    stat = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_folder_with_somebody_elses_files_is_refused_and_left_alone(world: World) -> None:
    theirs = world.data / "catalog" / "notes.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine", encoding="utf-8")

    built, cleaned = world.run("build"), world.run("clean")

    assert (built.returncode, theirs.read_text(encoding="utf-8")) == (1, "mine")
    assert "RETRIEVAL_HOME" in built.stderr
    assert "catalog" in built.stderr
    assert cleaned.returncode == 1
    assert theirs.exists()


def test_a_catalog_that_is_a_link_is_refused(world: World) -> None:
    outside = world.root / "outside"
    outside.mkdir()
    (outside / "notes.md").write_text("mine", encoding="utf-8")
    world.build()
    (world.data / "catalog").rename(world.root / "was")
    (world.data / "catalog").symlink_to(outside)

    done = world.run("build")

    assert done.returncode == 1
    assert "link" in done.stderr
    assert [path.name for path in outside.iterdir()] == ["notes.md"]


@pytest.mark.parametrize(
    "name",
    ["records.jsonl", "records.npy", "vectors.npy", "facets.msgpack", "lexical-docs.npy", "keys.npy", "manifest.json"],
)
def test_a_flipped_byte_under_unchanged_times_is_noticed_and_never_carried_on(world: World, name: str) -> None:
    world.build()
    before = world.snapshot()
    flip(world.data / "snapshots" / world.generation / name)

    world.build()

    assert world.snapshot() == before


def test_damage_is_not_taken_over_into_the_next_generation(world: World) -> None:
    world.build()
    flip(world.data / "snapshots" / world.generation / "records.jsonl")
    world.skill("sql-tuning", body="# SQL\n\nAnother text about an SQL database. " * 9)

    world.build()

    held = generation.read_manifest(world.data / "snapshots" / world.generation)
    assert held is not None
    assert generation.damaged(world.data / "snapshots" / world.generation, held) == []
    assert world.json("verify")["disagreements"] == []


@pytest.mark.parametrize("offset", [0.1, 0.3, 0.5, 0.65, 0.8])
def test_a_store_that_chroma_cannot_cope_with_is_written_again(world: World, offset: float) -> None:
    world.build()
    path = world.data / "chroma" / "chroma.sqlite3"
    data = bytearray(path.read_bytes())
    start = int(len(data) * offset)
    data[start : start + 4096] = b"\xa5" * len(data[start : start + 4096])
    path.write_bytes(data)
    world.skill("sql-tuning", body="# SQL\n\nAnother text about an SQL database. " * 9)

    world.build()

    assert world.json("verify")["disagreements"] == []


def test_a_locked_memo_is_not_taken_for_a_damaged_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memo.sqlite3"
    Memo(path).connection.close()
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **{**more, "timeout": 0}))
    holder = connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    memo = Memo(path)

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        memo.put("scan", [("00" * 16, b"x")])

    assert memo.moved_aside is None
    assert path.exists()


def test_a_damaged_lineage_is_begun_anew_and_a_reader_of_it_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lineage.sqlite3"
    path.write_bytes(b"no database at all" * 300)
    lineage = Lineage(path)
    before = path.read_bytes()
    assert lineage.of("a:b") == []
    assert path.read_bytes() == before

    lineage.record([Change("a:b", "scan", "run", 1.0, True, "", "x", "")])

    assert [change.step for change in lineage.of("a:b")] == ["scan"]


def test_looking_changes_nothing_in_the_data_directory(world: World) -> None:
    world.build()
    world.skill("release-notes", body="# Release notes\n\nAnother text. " * 20)

    def listing() -> dict[str, tuple[int, int]]:
        files = (path for path in world.data.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}

    before = listing()
    for words in (["why", "main:sql-tuning"], ["verify"], ["build", "--dry-run"], ["show", "main:sql-tuning"]):
        done = world.run(*words, "--json")
        assert json.loads(done.stdout)

    assert listing() == before


def test_a_build_from_another_configuration_says_whose_index_it_takes_over(world: World) -> None:
    world.build()
    other = world.root / "other.toml"
    other.write_text(world.config.read_text(encoding="utf-8"), encoding="utf-8")

    account = world.json("build", RETRIEVAL_CONFIG=str(other))

    assert any(str(world.config) in note and str(other) in note for note in account["notes"])
    assert world.json("build", RETRIEVAL_CONFIG=str(other))["notes"] == []
