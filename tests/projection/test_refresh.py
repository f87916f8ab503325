"""Selecting a skill again: nothing to do, a changed original, a damaged copy, a name that is no longer free."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from serve.projection import package, projector, putting, swap
from serve.projection.errors import ProjectionError
from serve.projection.layout import MARKER, read_marker
from serve.projection.manifest import Manifest
from tests.projection.conftest import skill_text, tree

if TYPE_CHECKING:
    from serve.contract import Record
    from tests.projection.conftest import World

pytestmark = pytest.mark.long


@pytest.fixture
def record(world: World) -> Record:
    record = world.skill("pdf")
    world.add(record, "scripts/run.sh", "#!/bin/sh\n", 0o755)
    return record


def inodes(folder: Path) -> dict[str, int]:
    return {path.relative_to(folder).as_posix(): path.lstat().st_ino for path in folder.rglob("*")}


def test_an_unchanged_package_is_current_and_its_copy_is_not_touched(world: World, record: Record) -> None:
    first = world.project(record)
    before = inodes(first.path)

    again = world.project(record)

    assert again == first._replace(state="current")
    assert inodes(first.path) == before
    assert os.listdir(world.layout.staging) == []


@pytest.mark.parametrize("change", ["edit", "add", "remove", "mode", "rename"])
def test_a_change_of_the_original_refreshes_the_copy(world: World, record: Record, change: str) -> None:
    first = world.project(record)
    home = Path(record.path).parent
    script = home / "scripts" / "run.sh"
    {
        "edit": lambda: script.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8"),
        "add": lambda: (home / "new.txt").write_text("new", encoding="utf-8"),
        "remove": script.unlink,
        "mode": lambda: script.chmod(0o700),
        "rename": lambda: script.rename(home / "moved.sh"),
    }[change]()

    again = world.project(record)

    copy = tree(again.path)
    del copy[MARKER]
    assert (again.state, again.path) == ("refreshed", first.path)
    assert copy == tree(home)
    if change == "mode":
        assert (again.path / "scripts" / "run.sh").stat().st_mode & 0o777 == 0o700
    assert world.project(record).state == "current"


def test_an_edit_that_leaves_size_and_time_as_they_were_is_noticed(world: World, record: Record) -> None:
    world.project(record)
    script = Path(record.path).parent / "scripts" / "run.sh"
    times = script.stat()
    script.write_text("#!/bin/zh\n", encoding="utf-8")
    os.utime(script, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert world.project(record).state == "refreshed"


def test_a_touched_original_is_compared_and_its_copy_stays(world: World, record: Record) -> None:
    first = world.project(record)
    before = inodes(first.path)
    os.utime(record.path)

    again = world.project(record)
    copies = []
    staged = projector.stage_package
    projector_again = lambda *arguments: copies.append(arguments) or staged(*arguments)  # noqa: E731
    with pytest.MonkeyPatch.context() as context:
        context.setattr(projector, "stage_package", projector_again)
        third = world.project(record)

    assert (again.state, third.state, copies) == ("current", "current", [])
    assert inodes(first.path) == before


def test_a_file_that_changed_a_moment_ago_is_compared_the_next_time_too(
    world: World, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "RACY_NS", 3_600_000_000_000)
    world.project(record)

    with Manifest(world.layout.manifest) as manifest:
        row = manifest.of_id("omp", record.id)
    assert row is not None
    assert row.seen == ""
    assert world.project(record).state == "current"


@pytest.mark.parametrize("damage", ["edit", "empty", "remove", "link", "folder"])
def test_a_damaged_copy_is_made_anew(world: World, record: Record, damage: str) -> None:
    first = world.project(record)
    place = first.path / "SKILL.md"
    if damage == "edit":
        place.write_text("tampered", encoding="utf-8")
    elif damage == "empty":
        os.truncate(place, 0)
    elif damage == "folder":
        shutil.rmtree(first.path)
    else:
        place.unlink()
    if damage == "link":
        place.symlink_to(record.path)

    again = world.project(record)

    assert again.state == ("copied" if damage == "folder" else "refreshed")
    assert again.path == first.path
    assert place.read_bytes() == Path(record.path).read_bytes()
    assert not place.is_symlink()
    assert world.project(record).state == "current"


def test_what_others_have_changed_in_a_copy_is_kept_when_it_is_refreshed(world: World, record: Record) -> None:
    first = world.project(record)
    (first.path / "result.txt").write_text("an agent's work", encoding="utf-8")
    (first.path / "scripts" / "__pycache__").mkdir()
    Path(record.path).write_text(skill_text("pdf", "Another."), encoding="utf-8")

    world.project(record)
    (kept,) = (world.layout.kept / "omp").iterdir()
    Path(record.path).write_text(skill_text("pdf", "A third."), encoding="utf-8")
    (first.path / "scripts" / "x.pyc").write_bytes(b"cache")
    world.project(record)

    assert (kept / "result.txt").read_text(encoding="utf-8") == "an agent's work"
    assert not (first.path / "result.txt").exists()
    assert list((world.layout.kept / "omp").iterdir()) == [kept]


def test_a_copy_moves_to_another_name_when_the_harness_gets_a_skill_of_its_name(world: World, record: Record) -> None:
    first = world.project(record)
    own = Path.home() / ".omp" / "agent" / "skills" / "pdf"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(skill_text("pdf"), encoding="utf-8")

    again = world.project(record)
    shutil.rmtree(own)
    third = world.project(record)

    assert (first.name, again.name, third.name) == ("pdf", "pdf-lib", "pdf-lib")
    assert (again.state, third.state) == ("refreshed", "current")
    assert world.listed() == ["pdf-lib"]
    assert again.skipped == ("SKILL.md: the name is pdf-lib, in the original pdf",)
    assert (again.path / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf-lib")


def test_an_original_that_moved_keeps_its_copy(world: World, record: Record) -> None:
    first = world.project(record)
    home = Path(record.path).parent
    moved = home.rename(home.with_name("moved"))
    again = world.project(world.record(moved / "SKILL.md", "pdf", id=record.id))

    marker = read_marker(first.path)
    assert (again.state, again.path) == ("current", first.path)
    assert marker is not None
    with Manifest(world.layout.manifest) as manifest:
        row = manifest.of_id("omp", record.id)
    assert row is not None
    assert row.original == str(moved)


def test_a_refusal_leaves_the_older_copy_as_it_was(world: World, record: Record) -> None:
    first = world.project(record)
    before = tree(first.path)
    world.add(record, "large", b"x" * 10_000)

    with pytest.raises(ProjectionError):
        world.project(record, project_bytes=5_000)

    assert tree(first.path) == before


@pytest.mark.parametrize("with_exchange", [True, False])
def test_a_rename_that_fails_leaves_the_older_copy_as_it_was(
    world: World, record: Record, monkeypatch: pytest.MonkeyPatch, with_exchange: bool
) -> None:
    first = world.project(record)
    before = tree(first.path)
    Path(record.path).write_text(skill_text("pdf", "Another."), encoding="utf-8")
    rename = os.rename
    if not with_exchange:
        monkeypatch.setattr(swap, "system_rename", lambda: None)

    def refuse(old: object, new: object, *_flags: int) -> None:
        if str(new) == str(first.path) and str(old).endswith("new"):
            raise OSError(5, "Input/output error")
        rename(old, new)  # type: ignore[arg-type]

    if with_exchange:
        monkeypatch.setattr(swap, "system_rename", lambda: refuse)
    else:
        monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(ProjectionError, match="the system refused the copy: input/output error"):
        world.project(record)
    monkeypatch.undo()

    assert tree(first.path) == before
    assert world.project(record).state == "refreshed"


def test_without_an_exchange_of_the_system_a_copy_is_refreshed_by_two_renames(
    world: World, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.project(record)
    Path(record.path).write_text(skill_text("pdf", "Another."), encoding="utf-8")
    monkeypatch.setattr(swap, "system_rename", lambda: None)

    again = world.project(record)

    assert (again.state, again.path) == ("refreshed", first.path)
    assert (again.path / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf", "Another.")
    assert world.listed() == ["pdf"]
    assert os.listdir(world.layout.staging) == []


def test_what_somebody_put_in_the_place_of_a_copy_is_never_replaced(world: World, record: Record) -> None:
    first = world.project(record)
    shutil.rmtree(first.path)
    first.path.mkdir()
    (first.path / "SKILL.md").write_text("mine", encoding="utf-8")

    again = world.project(record)

    assert (again.state, again.name) == ("copied", "pdf-lib")
    assert tree(first.path) == {"SKILL.md": b"mine"}


def test_a_change_made_while_a_copy_is_set_aside_is_seen_by_its_digest(world: World, record: Record) -> None:
    done = world.project(record)
    with Manifest(world.layout.manifest) as manifest:
        row = manifest.of_id("omp", record.id)
    assert row is not None

    assert not putting.was_changed(done.path, row)
    os.utime(done.path / "SKILL.md")
    assert not putting.was_changed(done.path, row)
    (done.path / "SKILL.md").write_text("other", encoding="utf-8")
    assert putting.was_changed(done.path, row)
