"""The real OMP and the real Hermes list what is projected, under the name that the answer gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from serve.projection import upkeep
from tests.projection.conftest import Omp, skill_text
from tests.selection.model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.projection.conftest import Hermes, World

pytestmark = pytest.mark.long

ODD = {
    "plain": skill_text("plain"),
    "with spaces": skill_text("With Spaces"),
    "quoted": skill_text('"quoted-name"'),
    "a number": skill_text("123"),
    "a date": skill_text("2024-01-02"),
    "a truth": skill_text("true"),
    "digits first": skill_text("3d-modeling"),
    "no head": "# A heading\n\nSome words.\n",
    "no name": "---\ndescription: No name here.\n---\nBody.\n",
    "no description": "---\nname: undescribed\n---\nBody.\n",
    "empty fields": "---\nname:\ndescription:\n---\nBody.\n",
    "mark": "\ufeff" + skill_text("marked"),
    "carriage returns": skill_text("returns").replace("\n", "\r\n"),
    "block name": "---\nname: >\n  folded\n  name\ndescription: |\n  Several\n  lines.\n---\nBody.\n",
    "twice": "---\nname: one\nname: two\ndescription: Twice named.\n---\nBody.\n",
    "colon": "---\nname: colon\ndescription: Use this: when needed: always\n---\nBody.\n",
    "slash": skill_text("group/of"),
    "signs": skill_text("C# & more, or less"),
    "end of file": "---\nname: ends-with-the-head\ndescription: Nothing follows.\n---",
    "a fence of dots": "---\nname: dotted\ndescription: Closed by dots.\n...\nBody.\n\n---\n\nMore.\n",
    "dots and dashes": "---\nname: dots-and-dashes\ndescription: Closed twice.\n...\n---\nBody.\n",
    "long-head": skill_text("long-head", "word " * 15_000),
    "long": skill_text("long-" * 30 + "name"),
    "foreign letters": skill_text("данные"),
    "comment": "<!-- licence -->\n" + skill_text("commented"),
    "end at once": "---\nname: ends\ndescription: Nothing follows.\n---",
    "open head": "---\nname: open\ndescription: Never closed.\n\n# Heading\n",
    "list": "---\nname: [a, b]\ndescription: A list.\n---\nBody.\n",
    "emoji": skill_text("📄-paper"),
    "latin": "---\nname: latin\ndescription: Für Größe.\n---\nBody.\n".encode("latin-1"),
    "utf-16": skill_text("sixteen").encode("utf-16"),
    "dots": skill_text("..."),
    "venv": skill_text("venv"),
}
NAMES = {"plain": "plain", "with spaces": "With Spaces", "quoted": "quoted-name", "returns": "returns"}


def _names_read(text: str | bytes, folder: str) -> str:
    """A name as a reader of skills may understand it: the head's, else the folder's."""
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    for line in shown.splitlines():
        if line.startswith("name:") and line[5:].strip(" \"'>"):
            return line[5:].strip(" \"'")
    return folder


def command(name: str) -> str:
    """The slash command that Hermes makes of a name, "" for none; by these it says what a reload has added."""
    return re.sub(r"-{2,}", "-", re.sub(r"[^a-z0-9-]", "", re.sub(r"[ _]", "-", name.lower()))).strip("-")


@pytest.mark.requirement("R009")
def test_omp_lists_every_odd_skill_under_the_name_it_was_given(start_omp: Callable[[], Omp], world: World) -> None:
    records = [world.skill(_names_read(text, kind), text, folder=kind) for kind, text in ODD.items()]
    program = start_omp()
    before = program.skills()

    done = {record.id: world.project(record, "omp").name for record in records}
    after = program.reload()

    assert {skill: name for skill, name in done.items() if name not in after} == {}
    assert len(set(done.values())) == len(ODD)
    assert after - before == set(done.values())


@pytest.mark.requirement("R008")
def test_hermes_lists_every_odd_skill_under_the_name_it_was_given(
    start_hermes: Callable[[], Hermes], world: World
) -> None:
    records = [world.skill(_names_read(text, kind), text, folder=kind) for kind, text in ODD.items()]
    program = start_hermes()
    program.reload()

    done = {record.id: world.project(record, "hermes") for record in records}
    added = {item["name"] for item in program.reload()["added"]}
    views = program.view(*(one.name for one in done.values()))

    names = {one.name for one in done.values()}
    assert program.skills() == names
    assert added == {command(name) for name in names} - {""}
    for one, view in zip(done.values(), views, strict=True):
        assert view["success"], view
        assert Path(view["skill_dir"]).resolve() == one.path.resolve()


@pytest.mark.requirement("R008", "R018")
def test_hermes_finds_a_projected_skill_after_a_reload_and_loses_it_after_it_was_cleared(
    start_hermes: Callable[[], Hermes], world: World
) -> None:
    record = world.skill("report-writer")
    program = start_hermes()
    assert program.reload()["total"] == 0

    world.project(record, "hermes")
    added = program.reload()["added"]
    listed = program.skills()
    upkeep.clear(world.layout, "hermes", [record.id], dry_run=False)
    removed = program.reload()["removed"]

    assert added == [{"name": "report-writer", "description": "Does what is asked."}]
    assert listed == {"report-writer"}
    assert [item["name"] for item in removed] == ["report-writer"]
    assert program.skills() == set()


def test_omp_loses_a_projected_skill_after_it_was_cleared(start_omp: Callable[[], Omp], world: World) -> None:
    record = world.skill("report-writer")
    program = start_omp()

    world.project(record, "omp")
    with_it = program.reload()
    upkeep.clear(world.layout, "omp", [record.id], dry_run=False)

    assert "report-writer" in with_it
    assert "report-writer" not in program.reload()


@pytest.mark.parametrize("nested", ["nested/SKILL.md", "deep/er/skill.md"])
def test_hermes_does_not_list_a_nested_skill(start_hermes: Callable[[], Hermes], world: World, nested: str) -> None:
    record = world.skill("outer")
    world.add(record, nested, skill_text("inner"))
    program = start_hermes()

    world.project(record, "hermes")
    program.reload()

    assert program.skills() == {"outer"}


def test_a_name_that_hermes_has_itself_stays_its_own_and_the_copy_gets_another(
    start_hermes: Callable[[], Hermes], world: World, tmp_path: Path
) -> None:
    own = tmp_path / "hermes-home" / "skills" / "office" / "folder-name"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(skill_text("pdf"), encoding="utf-8")
    records = [world.skill("pdf", folder="a", source="market"), world.skill("folder-name", folder="b", source="market")]
    program = start_hermes()

    names = [world.project(record, "hermes").name for record in records]
    views = program.view("pdf", "folder-name", *names)
    program.reload()

    assert names == ["pdf-market", "folder-name-market"]
    assert [view["success"] for view in views] == [True] * 4
    assert [Path(view["skill_dir"]).name for view in views] == ["folder-name", "folder-name", *names]
    assert program.skills() == {"pdf", *names}


def test_a_loose_file_takes_no_name_from_another_skill_of_hermes(
    start_hermes: Callable[[], Hermes], world: World, tmp_path: Path
) -> None:
    own = tmp_path / "hermes-home" / "skills" / "forms"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(skill_text("forms"), encoding="utf-8")
    (own / "notes.md").write_text("Notes.\n", encoding="utf-8")
    pdf, notes, itself = world.skill("pdf"), world.skill("notes"), world.skill("itself")
    for path in ("forms.md", "docs/forms.md", "references/forms.md", "other.md"):
        world.add(pdf, path)
    world.add(itself, "itself.md")
    program = start_hermes()

    done = [world.project(record, "hermes") for record in (pdf, notes, itself)]
    views = program.view("forms", *(one.name for one in done))

    assert [view["success"] for view in views] == [True] * 4
    assert [one.name for one in done] == ["pdf", "notes-lib", "itself-lib"]
    assert done[0].skipped == tuple(
        f"{path}: Hermes would confuse it with the skill of that name" for path in ("docs/forms.md", "forms.md")
    )
    assert (done[0].path / "references" / "forms.md").is_file()
    assert (done[0].path / "other.md").is_file()


def test_a_copy_does_not_stand_before_a_skill_of_omps_own_or_the_projects(
    start_omp: Callable[[], Omp], world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "omp-home"
    for place in (home / ".omp" / "agent" / "skills" / "pdf", home / "work" / ".omp" / "skills" / "notes"):
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(skill_text(place.name), encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    program = start_omp()

    names = {world.project(world.skill(name), "omp").name for name in ("pdf", "notes")}

    assert names == {"pdf-lib", "notes-lib"}
    assert program.reload() >= {"pdf", "notes", "pdf-lib", "notes-lib"}


@pytest.mark.requirement("R007")
def test_a_copy_is_still_listed_after_omp_has_compacted_its_context(omp: Path, world: World, tmp_path: Path) -> None:
    done = world.project(world.skill("report-writer"), "omp")
    server = ModelServer(lambda _turn, _request: "Done, and noted.")
    program = Omp(omp, tmp_path / "omp-home", world.lane("omp"), server.url)
    try:
        for number in range(5):
            program.ask("prompt", message=f"Remember number {number}. " * 1500)
            program.until(lambda message: message.get("type") == "agent_end")
        before = program.ask("get_state")
        summary = program.ask("compact")["summary"]
        after = program.ask("get_state")
        listed = program.skills()
    finally:
        code = program.close()
        server.close()

    assert code == 0
    assert "Done, and noted." in summary
    assert after["messageCount"] < before["messageCount"]
    assert "report-writer" in listed
    assert any("report-writer: Does what is asked." in part for part in after["systemPrompt"])
    assert world.project(world.skill("report-writer"), "omp") == done._replace(state="current")
