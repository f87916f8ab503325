"""Copies whose marker was damaged: the next selection puts them right, and nothing of anybody else's is replaced."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec
import pytest

from serve.projection import upkeep
from serve.projection.layout import MARKER, read_marker
from tests.projection.conftest import skill_text, tree

if TYPE_CHECKING:
    from pathlib import Path

    from serve.contract import Record
    from tests.projection.conftest import World

pytestmark = pytest.mark.long


@pytest.fixture
def record(world: World) -> Record:
    record = world.skill("pdf")
    world.add(record, "scripts/run.sh", "#!/bin/sh\n", 0o755)
    return record


def lose_manifest(world: World) -> None:
    for path in world.layout.root.glob("manifest.sqlite3*"):
        path.unlink()


def damage(copy: Path, how: str) -> None:
    """Make of a copy's marker something that is none of its own any more."""
    marker = read_marker(copy)
    assert marker is not None
    if how == "gone":
        (copy / MARKER).unlink()
    elif how == "foreign":
        (copy / MARKER).write_bytes(msgspec.json.encode(msgspec.structs.replace(marker, id="lib:other")))
    elif how == "link":
        (copy / MARKER).rename(copy.parent.parent / "marker")
        (copy / MARKER).symlink_to(copy.parent.parent / "marker")
    else:
        (copy / MARKER).write_text("{", encoding="utf-8")


def states(world: World) -> list[tuple[str, str]]:
    return [(item.row.folder, item.state) for item in upkeep.listing(world.layout)[0]]


@pytest.mark.parametrize("how", ["garbage", "gone", "foreign", "link"])
def test_a_damaged_marker_is_put_right_by_the_next_selection(world: World, record: Record, how: str) -> None:
    first = world.project(record)
    damage(first.path, how)

    again = world.project(record)

    assert (again.state, again.path) == ("refreshed", first.path)
    assert states(world) == [("pdf", "ok")]
    assert world.listed() == ["pdf"]
    assert not world.layout.kept.exists()
    assert world.project(record).state == "current"
    assert len(upkeep.clear(world.layout, "", None, dry_run=False).removed) == 1


@pytest.mark.parametrize("name", ["pdf", "pdf: the best", "123"])
def test_a_damaged_marker_is_put_right_even_when_the_list_is_lost(world: World, name: str) -> None:
    record = world.skill(name, f"---\nname: {name}\n---\nBody.\n", folder="pdf")
    world.add(record, "scripts/run.sh", "#!/bin/sh\n", 0o755)
    first = world.project(record)
    before = {path: data for path, data in tree(first.path).items() if path != MARKER}
    damage(first.path, "garbage")
    lose_manifest(world)

    again = world.project(record)

    assert (again.state, again.path, again.name) == ("refreshed", first.path, first.name)
    assert {path: data for path, data in tree(again.path).items() if path != MARKER} == before
    assert states(world) == [(first.path.name, "ok")]
    assert not world.layout.kept.exists()


@pytest.mark.parametrize("what", ["edit", "more", "fewer", "link", "no marker"])
def test_what_is_not_surely_the_copy_is_left_as_it_is(world: World, record: Record, what: str) -> None:
    first = world.project(record)
    damage(first.path, "gone" if what == "no marker" else "garbage")
    lose_manifest(world)
    if what == "edit":
        (first.path / "SKILL.md").write_text(skill_text("pdf", "Mine."), encoding="utf-8")
    elif what == "more":
        (first.path / "work.txt").write_text("work", encoding="utf-8")
    elif what == "fewer":
        (first.path / "scripts" / "run.sh").unlink()
    elif what == "link":
        (first.path / "more").symlink_to(world.library, target_is_directory=True)
    before = tree(first.path)

    again = world.project(record)

    assert (again.state, again.name) == ("copied", "pdf-lib")
    assert tree(first.path) == before
    assert world.project(record).state == "current"


def test_work_in_a_copy_with_a_damaged_marker_is_kept(world: World, record: Record) -> None:
    first = world.project(record)
    damage(first.path, "garbage")
    (first.path / "work.txt").write_text("work", encoding="utf-8")

    again = world.project(record)

    assert (again.state, again.path) == ("refreshed", first.path)
    assert [path.read_text(encoding="utf-8") for path in world.layout.kept.rglob("work.txt")] == ["work"]


def test_a_link_in_the_place_of_a_copy_is_not_taken_for_the_copy(world: World, record: Record) -> None:
    first = world.project(record)
    aside = first.path.rename(world.data / "aside")
    first.path.symlink_to(aside, target_is_directory=True)

    again = world.project(record)

    assert again.state == "copied"
    assert not again.path.is_symlink()
    assert os.path.realpath(first.path) == str(aside)
    shutil.rmtree(aside)
