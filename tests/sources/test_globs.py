"""Include and exclude patterns of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.sources.globs import Globs
from pipeline.sources.skills import walk

if TYPE_CHECKING:
    from tests.sources.conftest import Library


@pytest.mark.parametrize(
    ("pattern", "covered", "not_covered"),
    [
        ("drafts", ["drafts", "drafts/a", "drafts/a/b"], ["a/drafts", "draft", "drafts2"]),
        ("drafts/", ["drafts", "drafts/a"], ["a/drafts"]),
        ("./drafts", ["drafts/a"], ["a"]),
        ("drafts/**", ["drafts/a", "drafts/a/b"], ["drafts"]),
        ("**/drafts", ["drafts", "a/drafts", "a/b/drafts", "a/drafts/b"], ["a/drafts2", "xdrafts"]),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z", "a/z/y"], ["a", "z", "b/z"]),
        ("*", ["a", "a/b"], []),
        ("**", ["a", "a/b", "."], []),
        ("*/b", ["a/b", "a/b/c"], ["b", "x/a/b"]),
        ("*-old", ["x-old", "x-old/y"], ["a/x-old", "x-older"]),
        ("a?", ["ab", "ab/c"], ["a", "abc", "a/"]),
        ("[ab]x", ["ax", "bx"], ["cx", "[ab]x"]),
        ("[!ab]x", ["cx"], ["ax", "/x"]),
        ("[a-c]", ["b"], ["d"]),
        ("a[", ["a["], ["a"]),
        ("a.b", ["a.b"], ["axb"]),
        ("(a|b)+", ["(a|b)+"], ["a"]),
        ("A", ["A"], ["a"]),
        ("折纸/*", ["折纸/a"], ["折纸"]),
        (".", ["."], ["a"]),
    ],
)
def test_a_pattern_covers_these_folders(pattern: str, covered: list[str], not_covered: list[str]) -> None:
    globs = Globs(exclude=[pattern])

    assert [folder for folder in covered if not globs.excludes(folder)] == []
    assert [folder for folder in not_covered if globs.excludes(folder)] == []


def test_exclude_wins_over_include_and_no_include_means_all() -> None:
    assert Globs().keeps("a")
    assert Globs(include=["a"]).keeps("a/b")
    assert not Globs(include=["a"]).keeps("b")
    assert not Globs(include=["a"], exclude=["a/b"]).keeps("a/b")


def test_a_walk_finds_only_the_skills_that_are_wanted_and_counts_the_others(library: Library) -> None:
    library.write("SKILL.md", "a/SKILL.md", "a/b/SKILL.md", "c/SKILL.md")

    def folders(**patterns: list[str]) -> tuple[list[str], int]:
        found = walk(library.root, **patterns)
        return [skill.folder for skill in found.skills], found.excluded

    assert folders(include=["a"]) == (["a", "a/b"], 2)
    assert folders(exclude=["a"]) == ([".", "c"], 2)
    assert folders(include=["**"], exclude=["."]) == (["a", "a/b", "c"], 1)
    assert folders(include=["nothing"]) == ([], 4)


def test_an_excluded_nested_skill_stays_out_of_the_package_around_it(library: Library) -> None:
    library.write("a/SKILL.md", "a/x.txt", "a/assets/SKILL.md", "a/assets/y.txt")
    found = walk(library.root, exclude=["**/assets"])

    assert [(skill.folder, [name for name, _, _ in skill.files]) for skill in found.skills] == [("a", ["x.txt"])]


def test_an_excluded_folder_outside_packages_is_not_even_listed(library: Library) -> None:
    library.write("a/SKILL.md", "drafts/one/SKILL.md", "drafts/two/SKILL.md")

    assert walk(library.root, exclude=["drafts"]).listed == 2
