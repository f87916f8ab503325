"""`doctor`: every part is looked at on its own, and each finding that is not well has its next step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine.lock import WriterLock
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
    assert found.keys() == expected | {"embedder", "vector store", "index", "iwe"}
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
