"""Sources of kind "references": what a block may say, and what is refused as it is for skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.config.conftest import World

DATA = "home/.local/share/retrieval"


def block(name: str, path: str = "", more: str = "") -> str:
    return f'[[sources]]\nname = "{name}"\nkind = "references"\n' + (f'path = "{path}"\n' if path else "") + more + "\n"


def test_a_block_of_references_is_a_source_without_a_harness(world: World) -> None:
    folder = world.folder("here/handbook")
    world.config(block("handbook", "handbook", 'include = ["guides/*.md"]\nexclude = ["./drafts"]\n'))
    settings = world.load()
    (source,) = settings.sources

    assert (source.name, source.kind, source.path, source.available) == ("handbook", "references", folder, True)
    assert (source.harness, source.group) == ("", "")
    assert (source.include, source.exclude) == (("guides/*.md",), ("drafts",))
    assert settings.warnings == ()


def test_a_folder_inside_a_harness_gives_references_no_harness(world: World) -> None:
    world.folder("home/.claude/skills")
    world.config(block("notes", "~/.claude/skills"))
    (source,) = world.load().sources

    assert source.harness == ""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('state = "cold"\n', "state"),
        ('harness = "omp"\n', "harness"),
        ('group = "ours"\n', "group"),
        ("profiles = true\n", "profiles"),
        ('group = "ours"\nstate = "cold"\nharness = "omp"\n', "state, harness, group"),
    ],
)
def test_keys_that_only_skills_have_are_one_error(world: World, more: str, said: str) -> None:
    world.folder("here/handbook")
    world.config(block("handbook", "handbook", more))

    what, where, remedy = world.fails()

    assert what == f'source "handbook" is of kind "references" and has {said}, which only skills have'
    assert where.startswith("here/sources.toml:")
    assert remedy == f'remove {said}, or set kind = "skills"'


def test_references_need_a_path(world: World) -> None:
    world.config(block("handbook"))

    assert world.fails() == ('source "handbook" has no path', "here/sources.toml:1", 'add path = "…"')


def test_a_missing_folder_is_a_warning(world: World) -> None:
    world.config(block("ghost", "gone"))

    assert world.warns() == [
        (
            'source "ghost" has no references: the folder here/gone does not exist',
            "here/sources.toml:4",
            "create or mount it, correct the path, or set enabled = false",
        )
    ]


def test_a_disabled_source_of_references_is_listed_and_left_alone(world: World) -> None:
    world.skills("here/library")
    world.config(block("off", "$NOT_SET/x", "enabled = false\n") + '[[sources]]\nname = "library"\npath = "library"\n')
    settings = world.load()

    assert [(source.kind, source.enabled) for source in settings.sources] == [("references", False), ("skills", True)]
    assert settings.warnings == ()


def test_a_projection_lane_is_refused_also_through_a_link(world: World) -> None:
    lane = f"{DATA}/projections/hermes/skills"
    world.folder(lane)
    (world.cwd / "link").symlink_to(world.root / lane)
    world.config(block("lane", "link"))

    assert (
        world.fails()[0] == 'source "lane" is a projection lane, whose temporary copies would come back as references'
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("~/.local/share/retrieval", "lies in Retrieval's own data folder"),
        ("~/.local/share/retrieval/catalog", "lies in Retrieval's own data folder"),
        ("~", "contains Retrieval's own data folder"),
    ],
)
def test_the_data_folder_and_what_is_around_it_are_refused(world: World, path: str, said: str) -> None:
    world.config(block("own", path))

    assert world.fails()[0] == f'source "own" {said} {DATA}'


def test_a_folder_may_hold_skills_and_references_at_once(world: World) -> None:
    world.skills("here/library")
    world.config('[[sources]]\nname = "library"\npath = "library"\n' + block("books", "library"))

    assert world.warns() == []


def test_references_that_are_read_twice_are_a_warning(world: World) -> None:
    world.folder("here/handbook/guides")
    world.config(block("a", "handbook") + block("b", "handbook/guides"))

    assert [what for what, _where, _next in world.warns()] == [
        'source "b" lies inside source "a", so its references are found twice'
    ]
