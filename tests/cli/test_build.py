"""`build`: limited to sources, foreseen, kept an account of; `sync` is the same command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.world import World


def files_of(world: World) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in world.data.rglob("*") if path.is_file()}


def computed(account: Any) -> dict[str, int]:
    return {name: row["executed"] for name, row in account["steps"].items() if row["executed"]}


def test_a_dry_run_tells_what_a_build_then_does_and_does_nothing(world: World, command: Command) -> None:
    world.skill("index-advice", "Advise on database indexes. Use when a table grows.")
    before = files_of(world)

    foreseen = command(world, "build", "--dry-run", "--json").json
    text = command(world, "build", "--dry-run")

    assert files_of(world) == before
    assert foreseen["changes"] is True
    assert text.lines[0].split() == ["step", "compute", "reuse", "remove"]
    assert text.lines[-1] == "this is what a build would do; nothing was done"
    done = command(world, "build", "--json").json
    for step in ("scan", "categorize", "descriptor", "card", "terms", "embed", "upsert"):
        assert foreseen["steps"][step]["execute"] == done["steps"][step]["executed"] == 1, step
    assert foreseen["steps"]["hub"]["execute"] == done["steps"]["hub"]["written"] >= 1


def test_a_dry_run_of_a_current_index_says_that_nothing_would_change(world: World, command: Command) -> None:
    ended = command(world, "build", "--dry-run")

    assert (ended.code, ended.lines[-1]) == (0, "a build would change nothing")


def test_a_dry_run_before_the_first_build_makes_no_data(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.library()

    foreseen = command(world, "build", "--dry-run", "--json").json

    assert foreseen["steps"]["embed"]["execute"] == 4
    assert not (world.data / "snapshots").exists()
    assert not (world.data / "catalog").exists()
    assert not (world.data / "memo.sqlite3").exists()


def test_sync_is_the_same_command(world: World, command: Command) -> None:
    world.skill("index-advice", "Advise on database indexes. Use when a table grows.")

    ended = command(world, "sync", "--json")

    assert ended.code == 0
    assert ended.json["totals"]["indexed"] == 5
    assert command(world, "sync", "--dry-run").lines[-1] == "a build would change nothing"


def test_the_account_counts_what_each_step_did_and_is_kept(world: World, command: Command) -> None:
    world.skill("index-advice", "Advise on database indexes. Use when a table grows.")

    account = command(world, "build", "--json").json

    assert computed(account) | {"hub": 0, "select": 0, "publish": 0} == {
        **dict.fromkeys(("scan", "categorize", "descriptor", "card", "terms", "embed", "upsert"), 1),
        **dict.fromkeys(("hub", "select", "publish"), 0),
    }
    assert account["totals"] == {
        "found": 5,
        "indexed": 5,
        "duplicate": 0,
        "suppressed": 0,
        "review": 0,
        "problem": 0,
    }
    assert (account["generation"], account["published"]) == (world.generation, True)
    assert json.loads((world.data / "last-run.json").read_bytes()) == account


def test_text_says_how_many_how_long_and_what_was_computed(world: World, command: Command) -> None:
    world.skill("index-advice", "Advise on database indexes. Use when a table grows.")

    line = command(world, "build").lines[0]

    assert line.startswith("5 skills indexed in ")
    parts = set(line.partition("(computed: ")[2].rstrip(")").split(", "))
    assert parts == {f"{step} 1" for step in ("scan", "categorize", "descriptor", "card", "terms", "embed", "upsert")}


@pytest.mark.requirement("R068")
def test_only_the_sources_that_are_named_are_scanned(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path, "main", "side")
    world.library()
    world.build()
    world.skill("one", "Tune an SQL database.", source="main")
    world.skill("two", "Audit an SQL database.", source="side")

    first = command(world, "build", "side", "--json").json
    rest = command(world, "build", "--json").json

    assert (first["totals"]["indexed"], first["steps"]["scan"]["executed"]) == (5, 1)
    assert rest["totals"]["indexed"] == 6


@pytest.mark.requirement("R068")
def test_the_name_of_a_block_stands_for_all_its_sources(tmp_path: Path, command: Command) -> None:
    home = tmp_path / "hermes"
    world = World(tmp_path)
    for place in ("skills", "profiles/office/skills"):
        folder = home / place / f"in-{place.split('/')[0]}"
        folder.mkdir(parents=True)
        text = f"---\nname: {folder.name}\ndescription: Query an SQL database.\n---\n"
        (folder / "SKILL.md").write_text(text, encoding="utf-8")
    world.library()
    world.config.write_text(
        f'{world.config.read_text(encoding="utf-8")}\n[[sources]]\nname = "hermes"\nharness = "hermes"\n'
        f'profiles = true\nstate = "hidden"\npath = {json.dumps(str(home))}\n',
        encoding="utf-8",
    )

    account = command(world, "build", "hermes", "--json").json
    one = command(world, "build", "hermes-office", "--json")

    assert one.code == 0
    sources = command(world, "status", "--json").json["sources"]
    assert {name: row["found"] for name, row in sources.items()} == {"main": 4, "hermes": 1, "hermes-office": 1}
    assert account["steps"]["scan"]["tasks_run"] == 3  # one that was never scanned is, whoever was asked for


def test_a_disabled_source_cannot_be_built(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.extra["main"] = "enabled = false"
    world.configure()

    ended = command(world, "build", "main")

    assert ended.code == 2
    assert ended.err.splitlines()[0] == 'error: source "main" is disabled'
    assert ended.err.splitlines()[2] == "  next: set enabled = true"


def test_a_source_without_skills_is_a_note_and_no_warning(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path, "main", "empty")
    world.library()

    ended = command(world, "build")

    assert ended.code == 0
    assert ended.lines[1:] == [f"  note: source empty has no SKILL.md below {world.lib('empty')}"]


def test_a_mistake_in_the_environment_is_a_warning(world: World, command: Command) -> None:
    ended = command(world, "build", RETRIEVAL_HOEM="x")

    assert ended.code == 3
    assert ended.lines[1:] == [
        "warning: the variable RETRIEVAL_HOEM is unknown and has no effect",
        "  at environment variable RETRIEVAL_HOEM",
        '  next: did you mean "RETRIEVAL_HOME"?',
    ]


def test_the_store_can_be_begun_anew_without_embedding(world: World, command: Command) -> None:
    account = command(world, "build", "--rebuild-store", "--json").json

    assert (account["exit_code"], account["steps"]["upsert"]["written"]) == (0, 4)
    assert account["steps"]["embed"]["executed"] == 0
    assert command(world, "verify").code == 0
