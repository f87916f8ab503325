"""Listing, clearing and repairing lanes; a manifest that was lost or damaged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from serve.projection import upkeep
from serve.projection.errors import ProjectionError
from serve.projection.layout import MARKER, read_marker
from serve.projection.manifest import Manifest
from tests.projection.conftest import skill_text, tree

if TYPE_CHECKING:
    from serve.contract import Record
    from tests.projection.conftest import World


@pytest.fixture
def three(world: World) -> list[Record]:
    """pdf and docx in the lane of omp, pdf in that of hermes too, and three things that are nobody's projections."""
    pdf, docx = world.skill("pdf"), world.skill("docx")
    for record, harness in ((pdf, "omp"), (docx, "omp"), (pdf, "hermes")):
        world.project(record, harness)
    lane = world.lane("omp")
    (lane / "mine").mkdir()
    (lane / "mine" / "SKILL.md").write_text(skill_text("mine"), encoding="utf-8")
    (lane / "loose.txt").write_text("x", encoding="utf-8")
    (lane / "link").symlink_to(world.lane("hermes"))
    return [pdf, docx]


def names(items: list[upkeep.Listed]) -> list[tuple[str, str, str]]:
    return [(item.row.harness, item.row.id, item.state) for item in items]


def drop_manifest(world: World) -> None:
    for path in world.layout.root.glob("manifest.sqlite3*"):
        path.unlink()


@pytest.mark.requirement("R110")
def test_all_copies_are_listed_with_their_state_and_what_else_lies_there(world: World, three: list[Record]) -> None:
    (world.lane("omp") / "pdf" / "SKILL.md").write_text("changed", encoding="utf-8")
    shutil.rmtree(world.lane("omp") / "docx")

    found, rest = upkeep.listing(world.layout)

    assert names(found) == [("hermes", "lib:pdf", "ok"), ("omp", "lib:docx", "missing"), ("omp", "lib:pdf", "changed")]
    assert [Path(item.what).name for item in rest] == ["link", "loose.txt", "mine"]
    assert names(upkeep.listing(world.layout, "hermes")[0]) == [("hermes", "lib:pdf", "ok")]


def test_a_data_directory_without_projections_has_none_and_none_is_made(world: World) -> None:
    assert upkeep.listing(world.layout) == ([], [])
    assert upkeep.clear(world.layout, "", None, dry_run=False) == upkeep.Cleared([], [], [])
    assert upkeep.repair(world.layout) == upkeep.Repaired([], [], [], [])
    assert upkeep.stale_stages(world.layout) == []
    assert not world.layout.root.exists()


@pytest.mark.requirement("R010")
def test_clearing_one_skill_leaves_the_others_and_the_library_alone(world: World, three: list[Record]) -> None:
    library = tree(world.library)

    done = upkeep.clear(world.layout, "omp", ["lib:pdf"], dry_run=False)

    assert names(done.removed) == [("omp", "lib:pdf", "ok")]
    assert (done.kept, done.untouched) == ([], [])
    assert world.listed("omp") == ["docx", "link", "loose.txt", "mine"]
    assert world.listed("hermes") == ["pdf"]
    assert tree(world.library) == library
    assert os.listdir(world.layout.staging) == []


@pytest.mark.requirement("R018")
def test_clearing_everything_leaves_what_is_no_projection_and_names_it(world: World, three: list[Record]) -> None:
    done = upkeep.clear(world.layout, "", None, dry_run=False)

    assert len(done.removed) == 3
    assert [Path(item.what).name for item in done.untouched] == ["link", "loose.txt", "mine"]
    assert world.listed("omp") == ["link", "loose.txt", "mine"]
    assert tree(world.lane("omp") / "mine") == {"SKILL.md": skill_text("mine").encode()}
    assert upkeep.listing(world.layout)[0] == []


def test_a_dry_run_says_the_same_and_removes_nothing(world: World, three: list[Record]) -> None:
    before = tree(world.layout.root)

    planned = upkeep.clear(world.layout, "", None, dry_run=True)

    assert {path: data for path, data in tree(world.layout.root).items() if "manifest" not in path} == {
        path: data for path, data in before.items() if "manifest" not in path
    }
    assert names(planned.removed) == names(upkeep.clear(world.layout, "", None, dry_run=False).removed)


def test_an_unknown_id_is_an_error_and_nothing_is_removed(world: World, three: list[Record]) -> None:
    with pytest.raises(ProjectionError, match="no projected copy of lib:nope") as raised:
        upkeep.clear(world.layout, "", ["lib:pdf", "lib:nope"], dry_run=False)

    assert int(raised.value.code) == 2
    assert len(upkeep.listing(world.layout)[0]) == 3
    with pytest.raises(ProjectionError, match="no projected copy of lib:docx"):
        upkeep.clear(world.layout, "hermes", ["lib:docx"], dry_run=False)


@pytest.mark.requirement("R018")
@pytest.mark.parametrize("marker", ["none", "foreign id", "other harness", "garbage", "link"])
def test_a_listed_folder_without_a_matching_marker_is_left_alone(
    world: World, three: list[Record], marker: str, tmp_path: Path
) -> None:
    place = world.lane("omp") / "pdf"
    known = read_marker(place)
    assert known is not None
    (place / MARKER).unlink()
    if marker == "foreign id":
        (place / MARKER).write_bytes(msgspec.json.encode(msgspec.structs.replace(known, id="lib:docx")))
    elif marker == "other harness":
        (place / MARKER).write_bytes(msgspec.json.encode(msgspec.structs.replace(known, harness="hermes")))
    elif marker == "garbage":
        (place / MARKER).write_bytes(b"\xff{" * 1000)
    elif marker == "link":
        (tmp_path / "marker").write_bytes(msgspec.json.encode(known))
        (place / MARKER).symlink_to(tmp_path / "marker")

    done = upkeep.clear(world.layout, "omp", ["lib:pdf"], dry_run=False)

    assert done.removed == []
    assert [item.what for item in done.untouched] == [str(place)]
    assert (place / "SKILL.md").exists()


@pytest.mark.requirement("R018")
def test_a_marked_folder_that_is_not_listed_is_left_alone_until_repair_lists_it(
    world: World, three: list[Record]
) -> None:
    with Manifest(world.layout.manifest) as manifest:
        manifest.remove("omp", "docx")

    first = upkeep.clear(world.layout, "omp", None, dry_run=False)
    repaired = upkeep.repair(world.layout)
    second = upkeep.clear(world.layout, "omp", None, dry_run=False)

    assert names(first.removed) == [("omp", "lib:pdf", "ok")]
    assert "docx" in {Path(item.what).name for item in first.untouched}
    assert [row.id for row in repaired.adopted] == ["lib:docx"]
    assert names(second.removed) == [("omp", "lib:docx", "ok")]


def test_a_listed_copy_that_is_gone_is_forgotten(world: World, three: list[Record]) -> None:
    shutil.rmtree(world.lane("omp") / "docx")
    shutil.rmtree(world.lane("omp") / "pdf")

    cleared = upkeep.clear(world.layout, "omp", ["lib:docx"], dry_run=False)
    repaired = upkeep.repair(world.layout)

    assert names(cleared.removed) == [("omp", "lib:docx", "missing")]
    assert [row.id for row in repaired.forgotten] == ["lib:pdf"]
    assert names(upkeep.listing(world.layout)[0]) == [("hermes", "lib:pdf", "ok")]


def test_a_copy_that_somebody_has_changed_is_kept_when_it_is_cleared(world: World, three: list[Record]) -> None:
    (world.lane("omp") / "pdf" / "result.txt").write_text("work", encoding="utf-8")

    done = upkeep.clear(world.layout, "omp", ["lib:pdf"], dry_run=False)

    assert len(done.kept) == 1
    assert (Path(done.kept[0].what) / "result.txt").read_text(encoding="utf-8") == "work"
    assert "pdf" not in world.listed("omp")


@pytest.mark.parametrize("how", ["gone", "garbage", "empty", "cut"])
def test_a_lost_or_damaged_manifest_is_made_anew_from_the_markers(world: World, three: list[Record], how: str) -> None:
    before = names(upkeep.listing(world.layout)[0])
    data = world.layout.manifest.read_bytes()
    drop_manifest(world)
    if how != "gone":
        world.layout.manifest.write_bytes({"garbage": b"no database" * 500, "empty": b"", "cut": data[:5000]}[how])

    assert names(upkeep.listing(world.layout)[0]) == (before if how != "empty" else [])
    repaired = upkeep.repair(world.layout)
    assert names(upkeep.listing(world.layout)[0]) == before
    assert len(repaired.adopted) == (3 if how == "empty" else 0)
    assert world.project(three[0], "omp").state == "current"
    assert world.project(three[0], "omp").state == "current"
    assert world.listed("omp") == ["docx", "link", "loose.txt", "mine", "pdf"]


def test_a_selection_finds_a_copy_that_only_its_marker_tells_of(world: World) -> None:
    record = world.skill("pdf")
    first = world.project(record)
    with Manifest(world.layout.manifest) as manifest:
        manifest.remove("omp", "pdf")

    again = world.project(record)

    assert (again.state, again.path) == ("current", first.path)
    assert world.listed() == ["pdf"]


def test_repair_removes_what_killed_processes_left(world: World, three: list[Record]) -> None:
    left = world.layout.staging / "1-abc"
    (left / "new").mkdir(parents=True)
    (left / "new" / "SKILL.md").write_text("half", encoding="utf-8")
    (world.layout.staging / "2-def.lock").touch()

    assert [path.name for path in upkeep.stale_stages(world.layout)] == ["1-abc", "2-def"]
    repaired = upkeep.repair(world.layout)

    assert [path.name for path in repaired.swept] == ["1-abc", "2-def"]
    assert os.listdir(world.layout.staging) == []
    assert [Path(item.what).name for item in repaired.foreign] == ["link", "loose.txt", "mine"]


def test_copies_of_skills_that_no_source_has_any_more_are_orphans(world: World, three: list[Record]) -> None:
    assert names(upkeep.orphans(world.layout, {"lib:pdf"})) == [("omp", "lib:docx", "ok")]


def test_of_two_marked_folders_of_one_skill_the_newer_one_is_listed(world: World, three: list[Record]) -> None:
    lane = world.lane("omp")
    shutil.copytree(lane / "docx", lane / "older")
    marker = read_marker(lane / "older")
    assert marker is not None
    (lane / "older" / MARKER).write_bytes(msgspec.json.encode(msgspec.structs.replace(marker, projected_at=1.0)))
    drop_manifest(world)

    upkeep.repair(world.layout)
    found, rest = upkeep.listing(world.layout, "omp")

    assert [item.row.folder for item in found] == ["docx", "pdf"]
    assert "older" in {Path(item.what).name for item in rest}
