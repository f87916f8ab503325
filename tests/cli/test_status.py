"""`status`: counts that add up, every list one flag away, and whatever is not as it should be said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.engine.lock import WriterLock
from tests.cli.conftest import Command
from tests.world import World

PARTS = ("indexed", "duplicate", "suppressed", "review", "problem")
FLAGS = {"problem": "--problems", "review": "--review", "duplicate": "--duplicates", "suppressed": "--suppressed"}


def test_found_is_the_sum_of_what_became_of_it(library: World, command: Command) -> None:
    state = command(library, "status", *FLAGS.values(), "--json").json

    assert state["sources"] == {
        "main": {"found": 6, "indexed": 4, "duplicate": 0, "suppressed": 0, "review": 1, "problem": 1},
        "side": {"found": 2, "indexed": 1, "duplicate": 1, "suppressed": 0, "review": 0, "problem": 0},
        "own": {"found": 1, "indexed": 0, "duplicate": 0, "suppressed": 1, "review": 0, "problem": 0},
    }
    for row in (*state["sources"].values(), state["totals"]):
        assert row["found"] == sum(row[part] for part in PARTS)
    for status, rows in state["lists"].items():
        assert len(rows) == state["totals"][status]
    assert state["index"]["skills"] == state["totals"]["indexed"]


def test_each_list_names_its_skills_and_the_reason(library: World, command: Command) -> None:
    lists = command(library, "status", *FLAGS.values(), "--json").json["lists"]

    assert [(row["id"], row["winner"]) for row in lists["duplicate"]] == [("side:copy", "main:sql-tuning")]
    assert [row["id"] for row in lists["suppressed"]] == ["own:release-notes"]
    assert [row["id"] for row in lists["review"]] == ["main:nothing"]
    assert [row["path"] for row in lists["problem"]] == [str(library.lib("main") / "broken" / "SKILL.md")]
    assert all(row["reason"] for rows in lists.values() for row in rows)
    assert lists["problem"][0]["next"] == "restore the target, or remove the link"


@pytest.mark.parametrize(("status", "flag"), FLAGS.items())
def test_a_flag_lists_one_status(status: str, flag: str, library: World, command: Command) -> None:
    ended = command(library, "status", flag)
    rows = command(library, "status", flag, "--json").json["lists"]

    assert list(rows) == [status]
    assert f"{status}: 1" in ended.lines
    assert f"  {rows[status][0]['id']}" in ended.lines
    assert f"    {rows[status][0]['reason']}" in ended.lines


@pytest.mark.requirement("R115", "R229")
def test_text_shows_age_counts_lanes_store_and_versions(library: World, command: Command) -> None:
    ended = command(library, "status")

    assert ended.lines[0].startswith(f"index {library.generation[:8]}: 5 skills, published ")
    assert ended.lines[1].startswith("last build: ")
    assert ended.lines[2:8] == [
        "source  found  indexed  duplicate  suppressed  review  problem",
        "main        6        4          0           0       1        1",
        "side        2        1          1           0       0        0",
        "own         1        0          0           1       0        0",
        "total       9        5          1           1       1        1",
        "listed one by one with --duplicates, --suppressed, --review, --problems",
    ]
    rest = "\n".join(ended.lines[8:])
    assert "semantic lane: all-MiniLM-L6-v2-int8-128 (builtin, 384 dimensions)" in rest
    assert "lexical lane: BM25F over 5 skills" in rest
    assert f"store: embedded at {library.data / 'chroma'}: 5 rows" in rest
    assert "doit " in rest
    assert "chromadb " in rest
    assert f"data: {library.data}" in rest


def test_before_the_first_build_there_is_no_index(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)

    ended = command(world, "status")

    assert (ended.code, ended.err) == (1, "")
    assert ended.lines[0] == "there is no index yet; run `retrieval build`"
    assert not world.data.exists()


def warnings(world: World, command: Command, **variables: str) -> list[str]:
    ended = command(world, "status", "--json", **variables)
    assert ended.code == (3 if ended.json["warnings"] else 0)
    return [row["warning"] for row in ended.json["warnings"]]


def test_a_source_that_came_or_went_since_the_build_is_told(world: World, command: Command) -> None:
    world.lib("side").mkdir()
    world.sources = ["side"]
    world.configure()

    assert warnings(world, command) == [
        "source side is configured but not in the index",
        "source main is in the index but no longer configured",
    ]


@pytest.mark.requirement("R222")
def test_a_folder_that_is_away_is_told_by_build_and_status_and_its_skills_stay(world: World, command: Command) -> None:
    world.lib("main").rename(world.root / "away")

    built = command(world, "build")

    said = f'source "main" has no skills: the folder {world.lib("main")} does not exist'
    assert built.code == 3
    assert f"warning: {said}" in built.lines
    assert built.lines[0].startswith("4 skills indexed")
    state = command(world, "status", "--problems", "--json")
    assert state.code == 3
    assert [row["warning"] for row in state.json["warnings"]] == [said]
    assert state.json["sources"]["main"]["indexed"] == 4
    assert [row["reason"] for row in state.json["lists"]["problem"]] == [
        "source_missing: the source's folder does not exist; its 4 skills are kept as they were last seen"
    ]


def test_an_override_for_nobody_is_a_warning_of_build_and_status(world: World, command: Command) -> None:
    world.overrides.write_text(
        '[skills]\n"main:sql-tuning" = ["data"]\n"main:gone" = ["data"]\n"off:x" = ["data"]\n', encoding="utf-8"
    )
    world.extra["off"] = "enabled = false"
    world.sources.append("off")
    world.lib("off").mkdir()
    world.configure()
    said = 'the override for "main:gone" has no effect: no source has that skill'

    built = command(world, "build")

    assert built.code == 3
    assert [line for line in built.lines if line.startswith("warning:")] == [f"warning: {said}"]
    assert f"  at {world.overrides}" in built.lines
    assert warnings(world, command) == [said]


def test_many_overrides_for_nobody_are_counted_and_not_all_listed(world: World, command: Command) -> None:
    lines = "".join(f'"main:gone-{number}" = ["data"]\n' for number in range(50))
    world.overrides.write_text(f"[skills]\n{lines}", encoding="utf-8")

    told = command(world, "build", "--json").json["warnings"]

    assert len(told) == 21
    assert told[-1]["warning"] == "30 more overrides have no effect"


def test_a_build_that_failed_is_told_until_one_succeeds(world: World, command: Command) -> None:
    world.taxonomy.write_text("version = 1\n", encoding="utf-8")
    failed = command(world, "build")
    assert failed.code == 2
    world.taxonomy.unlink()

    assert warnings(world, command) == [f"the last build failed: {failed.err.splitlines()[0].removeprefix('error: ')}"]
    assert command(world, "build").code == 0
    assert warnings(world, command) == []


def test_an_index_that_somebody_touched_is_told(world: World, command: Command) -> None:
    (world.data / "snapshots" / world.generation / "facets.msgpack").touch()

    assert warnings(world, command) == ["the published index is not as the last build left it"]


def test_a_store_that_somebody_touched_is_told(world: World, command: Command) -> None:
    (world.data / "chroma" / "chroma.sqlite3").touch()

    assert "not as the last build left it" in command(world, "status", "--json").json["store"]


def test_while_a_build_runs_it_is_named_and_nothing_is_called_unfinished(world: World, command: Command) -> None:
    other = WriterLock(world.data / "writer.lock")
    other.acquire(0)
    try:
        world.lib("side").mkdir()
        world.sources.append("side")
        world.configure()
        ended = command(world, "status")
        state = command(world, "status", "--json").json
    finally:
        other.release()

    assert ended.lines[1] == f"a build is running: process {state['running']['pid']}"
    assert state["warnings"] == []


def test_another_embedder_than_the_index_has_is_told(world: World, command: Command) -> None:
    lane = command(world, "status", "--json", RETRIEVAL_EMBEDDER="fastembed").json["lanes"]["semantic"]

    assert "the configuration now asks for" in lane


def test_the_name_that_a_killed_build_left_is_nobodys(world: World, command: Command) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    left = world.data / "writer.lock.holder"
    left.write_text(json.dumps({"pid": ended.pid, "command": "build", "since": 1.0}), encoding="utf-8")

    for words in (["status"], ["verify"], ["graph"], ["doctor"]):
        assert command(world, *words, RETRIEVAL_LOCK_TIMEOUT="0").code == 0, words

    assert command(world, "status", "--json").json["running"] == {}
    assert left.exists()  # the next build has to know that one was killed
