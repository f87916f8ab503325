"""A small edit is decided together with the skills it is tied to; the manifests are those of a decision over all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.tasks import reselect
from tests.build.compare import elsewhere, manifests
from tests.world import World

MANY = 40


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "world", "main", "side")
    for number in range(MANY):
        made.skill(f"skill-{number:02}")
    made.build()
    return made


def decided(world: World) -> int:
    """Build; how many skills `select` decided. The manifests must be those of a clean build."""
    count = world.build().step("select").executed
    clean = elsewhere(world)
    shutil.rmtree(clean.data, ignore_errors=True)
    clean.build()
    assert manifests(world) == manifests(clean)
    assert (world.data / "build" / "links.jsonl").read_bytes() == (clean.data / "build" / "links.jsonl").read_bytes()
    return count


def test_an_edit_of_a_skill_without_ties_decides_that_one(world: World) -> None:
    world.skill("skill-07", body="Another text about an SQL database. " * 20)
    assert decided(world) == 1


def test_a_new_skill_and_a_removed_one_are_decided_alone(world: World) -> None:
    world.skill("skill-99")
    shutil.rmtree(world.lib("main") / "skill-03")
    assert decided(world) == 1


def test_a_duplicate_is_decided_with_what_it_repeats_and_so_is_its_going(world: World) -> None:
    twin = world.skill("skill-05", source="side")
    assert decided(world) == 2
    assert "side:skill-05" in world.json("show", "main:skill-05")["duplicates"]
    shutil.rmtree(twin.parent)
    assert decided(world) == 1
    assert world.json("show", "main:skill-05")["duplicates"] == []


def test_ties_are_followed_through_others(world: World) -> None:
    # a shares its name with b, b its text with c: an edit of c may change what becomes of a.
    text = "Steps for a database with SQL, told at some length. " * 10
    world.skill("one/linked", body="Something else about an SQL database. " * 20, source="side")
    world.skill("two/linked", body=text, source="side")
    world.skill("other", body=text, source="side")
    world.build()
    world.skill("other", body=f"{text} And more.", source="side")
    assert decided(world) == 3


def test_an_edit_that_reaches_many_skills_decides_them_all(world: World) -> None:
    for number in range(MANY // reselect.MOST + 1):
        world.skill(f"skill-{number:02}", body=f"Text {number} about an SQL database. " * 20)
    assert decided(world) == MANY


@pytest.mark.parametrize("damage", ["ties", "select", "links.jsonl"])
def test_what_is_lost_or_damaged_makes_the_next_build_decide_over_all(world: World, damage: str) -> None:
    place = world.data / "build" / damage
    for path in [place] if place.is_file() else place.glob("main*"):
        path.write_bytes(path.read_bytes()[:-40])
    world.skill("skill-07", body="Another text about an SQL database. " * 20)
    assert decided(world) == MANY


def test_a_changed_policy_decides_over_all(world: World) -> None:
    world.skill("odd", description="Nothing anybody knows.", body="Nothing that any category fits. " * 20)
    assert decided(world) == 1
    world.policy = "index"
    world.configure()
    assert decided(world) == MANY + 1
