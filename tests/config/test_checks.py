"""Sources against each other, and against what Retrieval itself writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.config.conftest import World

DATA = "home/.local/share/retrieval"
LANE = f"{DATA}/projections/hermes/skills"


def blocks(*pairs: tuple[str, str]) -> str:
    return "".join(f'[[sources]]\nname = "{name}"\npath = "{path}"\n\n' for name, path in pairs)


@pytest.mark.parametrize("path", [f"~/{LANE.removeprefix('home/')}", "~/.local/share/retrieval/projections", "link"])
@pytest.mark.requirement("R065")
def test_a_projection_lane_is_refused_also_through_a_link(world: World, path: str) -> None:
    world.skills(LANE)
    world.skills("here/library")
    (world.cwd / "link").symlink_to(world.root / LANE)
    world.config(blocks(("library", "library"), ("lane", path)))

    assert world.fails() == (
        'source "lane" is a projection lane, whose temporary copies would come back as skills',
        "here/sources.toml:5",
        "remove this block; Retrieval fills and clears its lanes itself",
    )


def test_a_lane_that_does_not_exist_yet_is_refused_as_well(world: World) -> None:
    world.config(blocks(("lane", "~/.local/share/retrieval/projections/omp/skills")))

    assert world.fails()[0].startswith('source "lane" is a projection lane')


@pytest.mark.parametrize("inside", ["", "/catalog", "/anything"])
def test_the_data_folder_is_no_source(world: World, inside: str) -> None:
    world.config(blocks(("own", f"~/.local/share/retrieval{inside}")))

    assert world.fails()[:2] == (f'source "own" lies in Retrieval\'s own data folder {DATA}', "here/sources.toml:1")


def test_a_folder_around_the_data_folder_is_no_source(world: World) -> None:
    world.config(blocks(("all", "~")))

    assert world.fails() == (
        f'source "all" contains Retrieval\'s own data folder {DATA}',
        "here/sources.toml:1",
        "name a narrower folder, or move the data with RETRIEVAL_HOME",
    )


def test_a_lane_of_a_moved_data_folder_is_refused(world: World) -> None:
    world.env["RETRIEVAL_HOME"] = "data"
    world.config(blocks(("lane", "data/projections/omp/skills")))

    assert world.fails()[0].startswith('source "lane" is a projection lane')


def test_a_disabled_lane_is_nobodys_concern(world: World) -> None:
    world.skills("here/library")
    world.config(
        blocks(("library", "library")) + f'[[sources]]\nname = "lane"\npath = "~/{LANE[5:]}"\nenabled = false\n'
    )

    assert world.warns() == []


def test_a_folder_that_only_begins_like_the_data_folder_is_a_source(world: World) -> None:
    world.skills(f"{DATA}-library")
    world.config(blocks(("library", "~/.local/share/retrieval-library")))

    assert world.warns() == []


@pytest.mark.parametrize("second", ["library", "./library/", "link"])
def test_one_folder_in_two_sources_is_a_warning(world: World, second: str) -> None:
    world.skills("here/library")
    (world.cwd / "link").symlink_to(world.cwd / "library")
    world.config(blocks(("a", "library"), ("b", second)))

    assert world.warns() == [
        (
            'source "b" is the same folder as source "a", so its skills are found twice',
            "here/sources.toml:5",
            "remove one of the two, or exclude the folder in the other",
        )
    ]


@pytest.mark.parametrize("order", [("inner", "outer"), ("outer", "inner")])
def test_a_source_inside_another_is_a_warning_at_the_inner_one(world: World, order: tuple[str, str]) -> None:
    paths = {"outer": "library", "inner": "library/web/deep"}
    world.skills("here/library/web/deep")
    world.config(blocks(*((name, paths[name]) for name in order)))

    assert world.warns() == [
        (
            'source "inner" lies inside source "outer", so its skills are found twice',
            f"here/sources.toml:{1 if order[0] == 'inner' else 5}",
            "remove one of the two, or exclude the folder in the other",
        )
    ]


@pytest.mark.parametrize("hidden", [".archive", ".git/x", "node_modules/pack", ".hub"])
def test_a_source_in_a_folder_that_is_never_walked_is_read_once(world: World, hidden: str) -> None:
    world.skills(f"here/library/{hidden}")
    world.config(blocks(("outer", "library"), ("inner", f"library/{hidden}")))

    assert world.warns() == []


@pytest.mark.parametrize(
    ("globs", "twice"),
    [
        ('exclude = ["web"]', False),
        ('exclude = ["**/deep"]', False),
        ('exclude = ["web/deep/**"]', False),
        ('exclude = ["data"]', True),
        ('include = ["data"]', False),
        ('include = ["web/**"]', True),
        ('include = ["data", "web/deep"]', True),
    ],
)
def test_a_source_that_the_outer_one_leaves_out_is_read_once(world: World, globs: str, twice: bool) -> None:
    world.skills("here/library/web/deep")
    outer = blocks(("outer", "library")).replace("\n\n", f"\n{globs}\n\n")
    world.config(outer + blocks(("inner", "library/web/deep")))

    assert len(world.warns()) == twice


def test_many_sources_side_by_side_are_fine(world: World) -> None:
    names = [f"lib{number}" for number in range(40)]
    for name in names:
        world.folder(f"here/{name}")
    world.config(blocks(*((name, name) for name in names)))

    assert len(world.load().sources) == 40
    assert world.warns() == []
