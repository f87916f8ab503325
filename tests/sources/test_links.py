"""Symbolic links: followed inside the source only, an alias and never a second skill."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipeline.sources import links
from pipeline.sources.skills import Walk, walk

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.sources.conftest import Library


def aliases(found: Walk, root: Path) -> dict[str, list[str]]:
    return {skill.folder: [os.path.relpath(alias, root) for alias in skill.aliases] for skill in found.skills}


def problems(found: Walk, root: Path) -> list[tuple[str, str]]:
    return [(problem.kind, os.path.relpath(problem.where, root)) for problem in found.problems]


def test_a_link_to_a_skill_is_an_alias_wherever_it_stands(library: Library) -> None:
    library.write("m/one/SKILL.md").link("a", "m/one").link("z/deep/link", "../../m/one").link(
        "b/SKILL.md", "../m/one/SKILL.md"
    )
    found = walk(library.root)

    assert aliases(found, library.root) == {"m/one": ["a/SKILL.md", "b/SKILL.md", "z/deep/link/SKILL.md"]}
    assert found.problems == []


def test_a_link_to_a_group_is_an_alias_of_each_skill_in_it(library: Library) -> None:
    library.write("m/one/SKILL.md", "m/two/skill.md", "m2/SKILL.md").link("all", "m")

    assert aliases(walk(library.root), library.root) == {
        "m/one": ["all/one/SKILL.md"],
        "m/two": ["all/two/skill.md"],
        "m2": [],
    }


def test_links_through_links_and_absolute_links_inside_are_followed(library: Library) -> None:
    library.write("one/SKILL.md").link("a", "b").link("b", library.root / "one")

    assert aliases(walk(library.root), library.root) == {"one": ["a/SKILL.md", "b/SKILL.md"]}


def test_a_source_that_is_itself_a_link_is_walked_under_its_own_name(library: Library, tmp_path: Path) -> None:
    library.write("one/SKILL.md").link("a", "one")
    (tmp_path / "other").symlink_to(library.root)
    found = walk(tmp_path / "other")

    assert [skill.path for skill in found.skills] == [str(tmp_path / "other/one/SKILL.md")]
    assert aliases(found, tmp_path / "other") == {"one": ["a/SKILL.md"]}


def test_nothing_outside_the_source_is_followed(library: Library, tmp_path: Path) -> None:
    (tmp_path / "library-secrets").mkdir()
    (tmp_path / "library-secrets/SKILL.md").write_text("secret", encoding="utf-8")
    library.write("one/SKILL.md").link("two/SKILL.md", tmp_path / "library-secrets/SKILL.md").link(
        "three", "../library-secrets"
    )
    library.link("one/notes.txt", tmp_path / "library-secrets/SKILL.md").link("hop", "three")
    found = walk(library.root)

    assert aliases(found, library.root) == {"one": []}
    assert problems(found, library.root) == [
        ("outside_link", "hop"),
        ("outside_link", "three"),
        ("outside_link", "two/SKILL.md"),
    ]
    assert found.skills[0].files == ()
    assert found.skills[0].diagnostics == ("bundled_link",)


def test_links_that_lead_nowhere_or_in_circles_are_problems(library: Library) -> None:
    library.write("one/SKILL.md").link("self", "self").link("ping", "pong").link("pong", "ping")
    library.link("gone", "missing").link("two/SKILL.md", "../missing.md").link("one/up", "..").link("one/here", ".")
    library.link("through-file", "one/SKILL.md/x")
    found = walk(library.root)

    assert aliases(found, library.root) == {"one": []}
    assert problems(found, library.root) == [
        ("dangling_link", "gone"),
        ("link_loop", "one/here"),
        ("link_loop", "one/up"),
        ("link_loop", "ping"),
        ("link_loop", "pong"),
        ("link_loop", "self"),
        ("dangling_link", "through-file"),
        ("dangling_link", "two/SKILL.md"),
    ]


def test_two_folders_that_link_to_each_other_are_each_walked_once(library: Library) -> None:
    library.write("a/one/SKILL.md", "b/two/SKILL.md").link("a/x", "../b").link("b/y", "../a")
    found = walk(library.root)

    assert aliases(found, library.root) == {"a/one": ["b/y/one/SKILL.md"], "b/two": ["a/x/two/SKILL.md"]}
    assert found.listed == 5
    assert found.problems == []


def test_a_linked_bundled_file_is_no_part_of_the_package_and_the_skill_says_so(library: Library) -> None:
    library.write("one/SKILL.md", "one/real.py", "common/tool.py").link("one/tool.py", "../common/tool.py")
    library.link("one/lib", "../common").link("one/lost.py", "missing.py").link("common/stray.py", "missing.py")
    found = walk(library.root)

    assert [name for name, _, _ in found.skills[0].files] == ["real.py"]
    assert found.skills[0].diagnostics == ("bundled_link",)
    assert found.problems == []


def test_a_skill_file_may_be_a_link_to_another_document_of_the_source(library: Library) -> None:
    library.write("docs/guide.md", text="# Guide").write("one/extra.txt").link("one/SKILL.md", "../docs/guide.md")
    library.link("two/skill.md", "../docs/guide.md").link("three/skill.md", "../docs/other.md").write("docs/other.md")
    found = walk(library.root)
    about = (library.root / "docs/guide.md").stat()

    assert aliases(found, library.root) == {"one": ["two/skill.md"], "three": []}
    assert found.skills[0].stat[0] == about.st_size
    assert found.skills[0].stat[3] == about.st_ino
    assert [name for name, _, _ in found.skills[0].files] == ["extra.txt"]
    assert found.skills[1].diagnostics == ("file_case",)


def test_a_link_beside_a_real_skill_file_is_ignored_and_said(library: Library) -> None:
    library.write("one/SKILL.md", "two/SKILL.md").link("one/skill.md", "../two/SKILL.md")
    found = walk(library.root)

    assert aliases(found, library.root) == {"one": [], "two": []}
    assert found.skills[0].diagnostics == ("two_skill_files",)


def test_a_link_into_an_ignored_folder_is_not_followed(library: Library) -> None:
    library.write(".git/config", "node_modules/pkg/SKILL.md").link("one/SKILL.md", "../.git/config").link(
        "pkg", "node_modules/pkg"
    )
    found = walk(library.root)

    assert found.skills == []
    assert problems(found, library.root) == [("ignored_target", "one/SKILL.md"), ("ignored_target", "pkg")]


def test_a_link_to_a_skill_file_over_the_limit_is_a_problem(library: Library) -> None:
    library.write("docs/big.md", text="x" * 100).link("one/SKILL.md", "../docs/big.md")

    assert problems(walk(library.root, max_bytes=99), library.root) == [("too_large", "one/SKILL.md")]


def test_links_that_multiply_skills_end_at_a_limit(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.write(*(f"m/{number}/SKILL.md" for number in range(10)))
    for number in range(10):
        library.link(f"link{number}", "m")
    monkeypatch.setattr(links, "MAX_ALIASES", 25)
    found = walk(library.root)

    assert sum(len(skill.aliases) for skill in found.skills) == 25
    assert [problem.kind for problem in found.problems] == ["too_many_links"]


def test_a_link_whose_target_appears_later_is_followed_then(library: Library) -> None:
    library.write("one/SKILL.md").link("soon/link", "../late/two")
    first = walk(library.root)
    library.write("late/two/SKILL.md")
    second = walk(library.root, cache=first.cache)

    assert [problem.kind for problem in first.problems] == ["dangling_link"]
    assert second.problems == []
    assert aliases(second, library.root) == {"late/two": ["soon/link/SKILL.md"], "one": []}
