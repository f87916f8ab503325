"""`clean` removes what builds have made and nothing else; the next build makes all of it again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.world import World


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_dry_run_lists_what_would_go_and_removes_nothing(world: World, command: Command) -> None:
    before = tree(world.data)

    listed = command(world, "clean", "--dry-run")
    removed = command(world, "clean", "--dry-run", "--json").json

    assert tree(world.data) == before
    assert [line for line in listed.lines if line.startswith("would remove ")] == [
        f"would remove {path}" for path in removed["removed"]
    ]
    assert {Path(path).name for path in removed["removed"]} >= {"build", "catalog", "snapshots", "chroma"}


@pytest.mark.requirement("R017", "R122")
def test_what_builds_made_goes_and_comes_back_without_embedding(world: World, command: Command) -> None:
    sources, snapshot, catalog = tree(world.lib("main")), world.snapshot(), world.catalog()
    (world.data / "mine.txt").write_text("mine", encoding="utf-8")

    ended = command(world, "clean")

    assert ended.code == 0
    left = {path.name for path in world.data.iterdir() if not path.name.startswith(("writer.lock", "memo.", "models"))}
    assert left == {".retrieval", "mine.txt"}
    assert ended.lines[-1] == (
        f"kept {world.data / 'memo.sqlite3'}: results are remembered, so that the next build is quick; --memo forgets them"
    )
    assert command(world, "search", "sql").code == 1
    account = command(world, "build", "--json").json
    assert account["steps"]["embed"]["executed"] == 0
    assert (world.snapshot(), world.catalog()) == (snapshot, catalog)
    assert tree(world.lib("main")) == sources
    assert command(world, "verify").code == 0


def test_with_memo_everything_is_computed_again(world: World, command: Command) -> None:
    before = world.snapshot()

    removed = command(world, "clean", "--memo", "--json").json

    assert str(world.data / "memo.sqlite3") in removed["removed"]
    assert removed["kept"] == []
    assert {path.name for path in world.data.iterdir()} == {".retrieval", "writer.lock"}
    assert command(world, "build", "--json").json["steps"]["embed"]["executed"] == 4
    assert world.snapshot() == before


def test_where_nothing_was_made_there_is_nothing_to_remove(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)

    ended = command(world, "clean")

    assert (ended.code, ended.out) == (0, "there is nothing to remove\n")
    assert not world.data.exists()


def test_it_needs_no_configuration_that_can_be_read(world: World, command: Command) -> None:
    world.config.write_text("this is no TOML", encoding="utf-8")

    ended = command(world, "clean")

    assert ended.code == 0
    assert not (world.data / "snapshots").exists()


def test_a_store_in_a_folder_of_ones_own_is_left_and_said_to_be(world: World, command: Command) -> None:
    place = world.root / "my store"
    variables = {"RETRIEVAL_CHROMA_PATH": str(place)}
    assert command(world, "build", **variables).code == 0

    ended = command(world, "clean", **variables)

    assert place.is_dir()
    assert f"kept {place}: the store's folder is your own choice, and may hold other things" in ended.lines


def test_a_link_to_another_place_is_not_followed(world: World, command: Command) -> None:
    elsewhere = world.root / "elsewhere"
    (world.data / "catalog").rename(elsewhere)
    (world.data / "catalog").symlink_to(elsewhere)
    count = len(tree(elsewhere))

    ended = command(world, "clean")

    assert ended.code == 0
    assert not os.path.lexists(world.data / "catalog")
    assert len(tree(elsewhere)) == count
