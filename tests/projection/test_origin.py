"""A link that takes the place of a skill's folder after the build is not followed, wherever it leads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from serve.projection import origin, projector
from serve.projection.errors import ProjectionError
from tests.projection.conftest import skill_text, tree

if TYPE_CHECKING:
    from serve.contract import Record
    from tests.projection.conftest import World

MESSAGE = "a link has taken the place of the skill's folder"


def linked(folder: Path, target: Path) -> None:
    """Move a folder to `target` and put a link to it in its place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder.rename(target)
    folder.symlink_to(target, target_is_directory=True)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("which", ["group/pdf", "group"])
@pytest.mark.parametrize("target", ["elsewhere", "library/other"])
def test_a_folder_replaced_by_a_link_is_refused(
    world: World, tmp_path: Path, which: str, target: str, known: bool
) -> None:
    record = world.skill("pdf", folder="group/pdf")
    world.add(record, "secret.txt")
    before = tree(world.project(record).path) if known else {}
    linked(world.library / which, tmp_path / target)

    with pytest.raises(ProjectionError, match=MESSAGE) as raised:
        world.project(record)

    assert raised.value.where == str(Path(record.path).parent)
    assert (tree(world.lane() / "pdf") if known else {}) == before
    assert not any(world.layout.staging.glob("*")) if world.layout.staging.exists() else not world.lane().exists()


def test_a_link_put_in_place_between_looking_and_copying_is_refused(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = world.skill("pdf")
    look = projector.look

    def swapped(*arguments: object) -> object:
        package = look(*arguments)  # type: ignore[arg-type]
        linked(Path(record.path).parent, tmp_path / "secret")
        return package

    monkeypatch.setattr(projector, "look", swapped)
    with pytest.raises(ProjectionError, match=MESSAGE):
        world.project(record)
    assert not world.lane().exists()


def test_a_folder_that_is_opened_and_then_replaced_is_refused(world: World, tmp_path: Path) -> None:
    record = world.skill("pdf")
    other = tmp_path / "other"
    other.mkdir()
    descriptor = os.open(other, os.O_RDONLY)
    try:
        with pytest.raises(ProjectionError, match=MESSAGE):
            origin.check(record, descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("folder", ["", "group/pdf"])
def test_a_source_whose_own_folder_is_a_link_is_followed(world: World, tmp_path: Path, folder: str) -> None:
    world.library.parent.joinpath("real").mkdir()
    world.library.symlink_to(tmp_path / "real", target_is_directory=True)

    record: Record = world.skill("pdf", folder=folder or ".")

    assert record.id == f"lib:{folder or '.'}"
    assert (world.project(record).path / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf")
