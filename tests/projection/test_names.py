"""Names of copies and folders: usable by every harness, unlike all others, and the same each time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve.projection.errors import ProjectionError
from serve.projection.names import Place, choose, folder_of, key, usable

RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
NAMES = st.one_of(
    st.text(max_size=300),
    st.sampled_from(
        ["", ".", "..", "CON", "con.txt", "venv", "node_modules", "a/b", "..\\x", "-", "Ünï", "x" * 400, ".git"]
    ),
)


@given(NAMES, st.text(min_size=1, max_size=40), st.integers(min_value=32, max_value=64))
def test_any_name_gives_a_place_that_every_system_and_harness_can_take(name: str, source: str, limit: int) -> None:
    taken: set[str] = set()
    places = [choose(name, f"{source}:{name}", limit, lambda place: place.folder not in taken, None)]
    for _ in range(4):
        taken.add(places[-1].folder)
        places.append(choose(name, f"{source}:{name}", limit, lambda place: place.folder not in taken, None))

    for place in places:
        assert usable(place.name, limit)
        assert re.fullmatch(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_])?", place.folder), place
        assert place.folder.split(".")[0].casefold() not in RESERVED | {"venv", "node_modules"}
    assert len({place.folder for place in places}) == len(places)


@given(NAMES, st.text(min_size=1, max_size=40))
def test_the_same_skill_gets_the_same_place_each_time(name: str, skill_id: str) -> None:
    assert choose(name, skill_id, 64, lambda _place: True, None) == choose(
        name, skill_id, 64, lambda _place: True, None
    )


def test_a_taken_name_gets_the_sources_and_then_digits_of_the_id() -> None:
    tried: list[Place] = []

    def none_is_free(place: Place) -> bool:
        tried.append(place)
        return False

    with pytest.raises(ProjectionError, match="no name is left"):
        choose("My Skill", "market:a/my-skill", 64, none_is_free, None)
    assert [place.name for place in tried[:3]] == ["My Skill", "my-skill", "my-skill-market"]
    assert re.fullmatch(r"my-skill-[0-9a-f]{8}", tried[3].name)
    assert re.fullmatch(r"my-skill-[0-9a-f]{8}-2", tried[4].name)
    assert len(set(tried)) == len(tried)


def test_a_place_that_is_held_is_kept_while_it_is_free() -> None:
    held = Place("old-name", "old-name")

    assert choose("pdf", "lib:pdf", 64, lambda _place: True, held) == held
    assert choose("pdf", "lib:pdf", 64, lambda place: place != held, held) == Place("pdf", "pdf")


@pytest.mark.parametrize(
    ("one", "other"),
    [("PDF", "pdf"), ("git_helper", "git-helper"), ("My Skill", "my-skill"), ("a.b", "a-b"), ("x", "x-")],
)
def test_names_are_alike_when_a_command_or_a_file_system_would_make_them_one(one: str, other: str) -> None:
    assert key(one) == key(other)


def test_names_of_other_scripts_are_told_apart() -> None:
    assert len({key(name) for name in ("данные", "文档", "ドキュメント", "📄", "---")}) == 5


@pytest.mark.parametrize(
    ("name", "folder"),
    [("pdf", "pdf"), ("My Skill", "My-Skill"), ("v1.2", "v1.2"), ("aux", "skill-aux"), ("Con.x", "skill-Con.x")],
)
def test_a_folder_is_named_like_the_skill_where_that_is_a_plain_name(name: str, folder: str) -> None:
    assert folder_of(name, "lib:x") == folder
