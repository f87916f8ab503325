"""A head that the index reads is changed in a copy by no more than a harness needs, and the copy says what that was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projection.conftest import skill_text

if TYPE_CHECKING:
    from tests.projection.conftest import World

pytestmark = pytest.mark.long

HEAD = "---\nname: pdf\ndescription: Does it.\n"
CLOSED = ("SKILL.md: the line that closes its head was written so that every harness knows it",)


@pytest.mark.parametrize(
    ("text", "copy", "skipped"),
    [
        (f"{HEAD}---", f"{HEAD}---\n", CLOSED),
        (f"{HEAD}...\nBody.\n", f"{HEAD}---\nBody.\n", CLOSED),
        (skill_text("pdf", "word " * 30_000), skill_text("pdf", "word " * 30_000), ()),
        (f"{HEAD}...\n---\nBody.\n", f"{HEAD}...\n---\nBody.\n", ()),
    ],
    ids=["end of file", "dots", "long", "dots and dashes"],
)
@pytest.mark.parametrize("harness", ["omp", "hermes"])
def test_a_head_that_the_index_reads_never_gets_a_second_one(
    world: World, harness: str, text: str, copy: str, skipped: tuple[str, ...]
) -> None:
    done = world.project(world.skill("pdf", text), harness)

    written = (done.path / "SKILL.md").read_bytes()
    same = written == copy.encode()  # their difference takes long to show
    assert same, written[:200]
    assert (done.name, done.skipped) == ("pdf", skipped)


@pytest.mark.parametrize(
    ("line", "name", "note"),
    [
        ("name: 123", "123", "the name 123 was written so that every harness reads it"),
        ("tags: [a]", "My Skill", "the name My Skill was added"),
        ("name: my__skill:x", "my__skill:x", "the name is my-skill-x, in the original my__skill:x"),
    ],
)
def test_a_note_says_what_was_done_to_the_name(world: World, line: str, name: str, note: str) -> None:
    record = world.skill(name, f"---\n{line}\ndescription: Does it.\n---\nBody.\n", folder="a")

    assert world.project(record).skipped == (f"SKILL.md: {note}",)


def test_a_name_of_the_harness_with_a_long_head_is_not_taken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    home = world.library.parent / "home"
    own = home / ".omp" / "agent" / "skills" / "mine"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(f"---\ndescription: {'word ' * 10_000}\nname: pdf\n---\n", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))

    assert world.project(world.skill("pdf")).name == "pdf-lib"
