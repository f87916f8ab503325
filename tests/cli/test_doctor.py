"""`doctor`: every part is looked at on its own, and each finding that is not well has its next step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine.lock import WriterLock
from serve.usage import Event, UsageLog
from tests.chroma.support import free_port
from tests.cli.conftest import Command
from tests.world import World


def findings(world: World | Path, command: Command, code: int, **variables: str) -> dict[str, list[Any]]:
    ended = command(world, "doctor", "--json", **variables)
    assert ended.code == code, ended
    found: dict[str, list[Any]] = {}
    for row in ended.json:
        found.setdefault(row["name"], []).append(row)
        assert row["next"] or row["result"] in {"ok", "info"}, row
    return found


def test_a_built_world_is_well(library: World, command: Command) -> None:
    ended = command(library, "doctor")
    found = findings(library, command, 0)

    assert (ended.code, ended.err) == (0, "")
    expected = {"Python", "configuration", "source main", "source side", "source own", "data directory", "taxonomy"}
    answering = {"iwec", "selector", "projections", "usage record"}
    assert found.keys() == expected | {"embedder", "vector store", "index", "iwe"} | answering
    assert {row["result"] for rows in found.values() for row in rows} <= {"ok", "info"}
    assert f"✓ source main: {library.lib('main')} (cold)" in ended.lines
    assert f"✓ source own: {library.lib('own')} (native of omp)" in ended.lines
    assert f"✓ index: 5 skills, generation {library.generation[:8]}" in ended.lines


def test_it_writes_nothing(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)

    found = findings(world, command, 3)

    assert not world.data.exists()
    assert (found["index"][0]["detail"], found["index"][0]["next"]) == (
        "there is no index yet",
        "run `retrieval build`",
    )
    assert found["vector store"][0]["result"] == "warn"


def test_without_a_configuration_the_rest_is_looked_at(tmp_path: Path, command: Command) -> None:
    found = findings(tmp_path, command, 1)

    assert found["configuration"][0]["result"] == "fail"
    assert found["configuration"][0]["next"] == "run `retrieval init` to make one, or name one with --config"
    assert found["Python"][0]["result"] == "ok"
    assert "iwe" in found


def test_a_broken_part_hides_no_other(world: World, command: Command) -> None:
    world.taxonomy.write_text("version = 1\n", encoding="utf-8")

    found = findings(world, command, 1)

    assert found["taxonomy"][0]["result"] == "fail"
    assert found["taxonomy"][0]["where"].startswith(str(world.taxonomy))
    assert found["index"][0]["result"] == found["embedder"][0]["result"] == found["data directory"][0]["result"] == "ok"


def test_a_folder_that_is_away_is_a_warning_that_points_at_its_block(world: World, command: Command) -> None:
    world.lib("main").rename(world.root / "away")

    found = findings(world, command, 3)

    row = found["source main"][0]
    assert (row["result"], row["where"]) == ("warn", f"{world.config}:4")
    assert row["detail"] == f"{world.lib('main')} is not there"


def test_only_services_out_of_reach_end_with_4(world: World, command: Command) -> None:
    variables = {
        "RETRIEVAL_EMBEDDER": "endpoint",
        "RETRIEVAL_EMBEDDING_URL": f"http://127.0.0.1:{free_port()}/v1",
        "RETRIEVAL_EMBEDDING_MODEL": "m",
        "RETRIEVAL_EMBEDDING_RETRIES": "0",
    }
    found = findings(world, command, 4, **variables)

    assert found["embedder"][0]["result"] == "fail"
    world.taxonomy.write_text("version = 1\n", encoding="utf-8")
    findings(world, command, 1, **variables)


def test_a_chroma_server_out_of_reach_is_a_failure(world: World, command: Command) -> None:
    found = findings(world, command, 4, RETRIEVAL_CHROMA_MODE="server", RETRIEVAL_CHROMA_PORT=str(free_port()))

    assert found["vector store"][0]["result"] == "fail"


def test_a_build_that_runs_is_named(world: World, command: Command) -> None:
    other = WriterLock(world.data / "writer.lock")
    other.acquire(0)
    try:
        found = findings(world, command, 0)
    finally:
        other.release()

    assert found["writer lock"][0]["detail"].endswith("a build is running")


def test_overrides_are_counted_and_those_for_nobody_are_warnings(world: World, command: Command) -> None:
    world.overrides.write_text('[skills]\n"main:sql-tuning" = ["data"]\n', encoding="utf-8")
    assert findings(world, command, 0)["overrides"][0]["detail"] == f"1 skills, {world.overrides}"
    world.overrides.write_text('[skills]\n"main:gone" = ["data"]\n', encoding="utf-8")

    found = findings(world, command, 3)

    assert [row["result"] for row in found["overrides"]] == ["warn"]


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
def test_the_configured_iwe_is_the_one_that_is_asked(world: World, command: Command) -> None:
    program = world.root / "my iwe"
    program.write_text("#!/bin/sh\necho iwe 9.9.9\n", encoding="utf-8")
    program.chmod(0o755)

    found = findings(world, command, 0, RETRIEVAL_IWE_COMMAND=str(program))
    broken = findings(world, command, 3, RETRIEVAL_IWE_COMMAND=str(world.root / "nothing"))

    assert found["iwe"][0]["detail"] == f"iwe 9.9.9, {program}"
    assert "is not a program" in broken["iwe"][0]["detail"]


def test_env_files_in_force_are_named(world: World, command: Command) -> None:
    (world.root / ".env").write_text("RETRIEVAL_LOCK_TIMEOUT=1\n", encoding="utf-8")

    found = findings(world, command, 0)

    assert found["environment"][0]["detail"] == f"variables from {world.root / '.env'}"


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
def test_the_server_of_iwe_is_asked_for_its_version(world: World, command: Command) -> None:
    program = world.root / "my iwec"
    program.write_text("#!/bin/sh\necho iwec 9.9.9\n", encoding="utf-8")
    program.chmod(0o755)

    there = findings(world, command, 0, RETRIEVAL_IWEC_COMMAND=str(program))
    off = findings(world, command, 0, RETRIEVAL_IWEC_COMMAND="off")
    broken = findings(world, command, 3, RETRIEVAL_IWEC_COMMAND=str(world.root / "nothing"))

    assert there["iwec"][0]["detail"] == f"iwec 9.9.9, {program}"
    assert (off["iwec"][0]["result"], off["iwec"][0]["detail"].partition(";")[0]) == ("info", "switched off")
    assert broken["iwec"][0]["next"].startswith("correct RETRIEVAL_IWEC_COMMAND")


def test_a_selector_without_its_model_is_a_warning_with_a_remedy(world: World, command: Command) -> None:
    well = findings(world, command, 0, RETRIEVAL_SELECTOR="rank")
    found = findings(world, command, 3, RETRIEVAL_SELECTOR="endpoint")

    assert well["selector"] == [
        {"name": "selector", "result": "ok", "detail": "rank", "where": "", "next": ""},
    ]
    assert [row["result"] for name, rows in found.items() if name.startswith("selector: ") for row in rows] == ["warn"]


def test_lanes_are_counted_and_nothing_is_left_in_them(world: World, command: Command) -> None:
    assert findings(world, command, 0)["projections"][0]["result"] == "info"
    lane = world.data / "projections" / "omp" / "skills"
    (lane / "one").mkdir(parents=True)
    (lane / ".staged").mkdir()
    assert findings(world, command, 0)["projections of omp"][0]["detail"] == f"1 copy, {lane}"
    assert sorted(path.name for path in lane.iterdir()) == [".staged", "one"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a folder that even its owner cannot write to")
def test_a_lane_that_cannot_be_written_to_is_a_failure(world: World, command: Command) -> None:
    lane = world.data / "projections" / "omp" / "skills"
    lane.parent.mkdir(parents=True)
    lane.symlink_to("/proc/self/fdinfo")

    found = findings(world, command, 1)["projections of omp"][0]

    assert found["result"] == "fail"
    assert found["detail"].startswith(f"{lane} cannot be written to: ")


def test_the_usage_record_is_counted_and_a_damaged_one_is_a_warning(world: World, command: Command) -> None:
    assert findings(world, command, 0)["usage record"][0]["detail"] == "nothing recorded yet"
    log = UsageLog(world.data)
    log.record(Event(tool="t", query="q"))
    log.close()
    held = findings(world, command, 0)["usage record"][0]
    off = findings(world, command, 0, RETRIEVAL_USAGE="false")["usage record"][0]
    log.path.write_bytes(b"no database" * 500)
    damaged = findings(world, command, 3)["usage record"][0]

    assert ": 1 queries, " in held["detail"]
    assert (held["result"], off["result"], damaged["result"]) == ("ok", "info", "warn")
    assert off["detail"].startswith("switched off; kept from before: since ")
    assert damaged["next"] == "move it away; it is begun anew"
    assert damaged["where"] == str(log.path)


def test_a_setting_of_answering_that_cannot_be_read_hides_no_other_finding(world: World, command: Command) -> None:
    found = findings(world, command, 1, RETRIEVAL_IWE_BUDGET="soon")

    assert found["answering"][0]["result"] == "fail"
    assert "RETRIEVAL_IWE_BUDGET" in found["answering"][0]["detail"] + found["answering"][0]["where"]
    assert found["index"][0]["result"] == "ok"
