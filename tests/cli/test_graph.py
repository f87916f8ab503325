"""`graph`: the tasks with the state they are really in, as text, as DOT and as JSON."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Command
from tests.world import World

STEPS = ("scan", "categorize", "select", "descriptor", "card", "hub", "tidy", "terms", "embed", "upsert", "publish")


def states(world: World, command: Command) -> dict[str, str]:
    return {node["name"]: node["state"] for node in command(world, "graph", "--json").json}


def test_before_the_first_build_everything_is_to_be_done(tmp_path: object, world: World, command: Command) -> None:
    fresh = World(world.root / "fresh")
    fresh.library()

    found = states(fresh, command)

    assert found["scan:main"] == "stale"
    assert set(found.values()) <= {"stale", "waiting"}
    assert not (fresh.data / "snapshots").exists()


def test_after_a_build_every_task_is_current(world: World, command: Command) -> None:
    found = states(world, command)

    assert set(found.values()) == {"current"}
    assert {name.partition(":")[0] for name in found} == set(STEPS)


def test_an_edit_makes_its_scan_stale_and_lets_the_rest_wait(world: World, command: Command) -> None:
    world.skill("index-advice", "Advise on database indexes.")

    found = states(world, command)

    assert found.pop("scan:main") == "stale"
    assert set(found.values()) == {"waiting"}


def test_a_touch_makes_nothing_stale(world: World, command: Command) -> None:
    (world.lib("main") / "sql-tuning" / "SKILL.md").touch()

    assert set(states(world, command).values()) == {"current"}


def test_a_card_edited_by_hand_makes_its_task_stale(world: World, command: Command) -> None:
    next((world.data / "catalog").rglob("*sql-tuning*.md")).write_text("mine", encoding="utf-8")

    found = states(world, command)

    assert found["card:main"] == "stale"
    assert found["scan:main"] == found["select"] == found["embed:main"] == "current"


def test_looking_changes_nothing(world: World, command: Command) -> None:
    (world.lib("main") / "pod-audit" / "notes.md").write_text("other\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in world.data.rglob("*") if path.is_file()}

    command(world, "graph")

    assert {path: path.read_bytes() for path in world.data.rglob("*") if path.is_file()} == before
    assert world.counts() == {}  # a bundled file reaches the record alone


@pytest.mark.parametrize("form", ["text", "dot"])
def test_both_forms_name_every_task_its_state_and_its_needs(form: str, library: World, command: Command) -> None:
    nodes = command(library, "graph", "--json").json
    text = command(library, "graph", "--format", form).out

    for node in nodes:
        assert node["name"] in text
        if form == "dot":
            assert all(f'"{need}" -> "{node["name"]}";' in text for need in node["needs"])
        else:
            assert f"{node['name']} ({node['state']})" in text
    if form == "dot":
        assert text.startswith("digraph ")
        assert text.count("{") == text.count("}")
        assert len(re.findall(r'^  "[^"]+" \[.*\];$', text, flags=re.MULTILINE)) == len(nodes)
