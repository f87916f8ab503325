"""A Hermes home and its profiles, on each system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.config.hermes import default_home, root_of

if TYPE_CHECKING:
    from tests.config.conftest import World

HERMES = '[[sources]]\nname = "hermes"\nharness = "hermes"\nprofiles = true\n'


def unfolded(world: World) -> list[tuple[str, str, str]]:
    return [(source.name, world.short(str(source.path)), source.state) for source in world.load().sources]


@pytest.mark.requirement("R204", "R301")
@pytest.mark.parametrize(
    ("os_name", "environ", "home", "expected"),
    [
        ("posix", {}, "/home/ada", "/home/ada/.hermes"),
        ("posix", {"LOCALAPPDATA": "C:\\Local"}, "/home/ada", "/home/ada/.hermes"),
        ("nt", {"LOCALAPPDATA": "D:\\Local"}, "C:\\Users\\Ada", "D:\\Local\\hermes"),
        ("nt", {}, "C:\\Users\\Ada", "C:\\Users\\Ada\\AppData\\Local\\hermes"),
        ("nt", {"LOCALAPPDATA": ""}, "C:\\Users\\Ada", "C:\\Users\\Ada\\AppData\\Local\\hermes"),
    ],
)
def test_each_system_has_its_own_default(os_name: str, environ: dict[str, str], home: str, expected: str) -> None:
    assert default_home(environ, home, os_name) == expected


@pytest.mark.requirement("R206")
@pytest.mark.parametrize(
    ("os_name", "path", "expected"),
    [
        ("posix", "/home/ada/.hermes", "/home/ada/.hermes"),
        ("posix", "/home/ada/.hermes/profiles/coder", "/home/ada/.hermes"),
        ("posix", "/home/ada/.hermes/somewhere/else", "/home/ada/.hermes"),
        ("posix", "/home/ada/.hermes/skills", "/home/ada/.hermes"),
        ("posix", "/opt/h", "/opt/h"),
        ("posix", "/opt/h/profiles/coder", "/opt/h"),
        ("posix", "/opt/h/profiles/coder/skills", "/opt/h"),
        ("posix", "/opt/h/skills", "/opt/h"),
        ("posix", "/opt/profiles/coder/.hermes", "/opt/profiles/coder/.hermes"),
        ("posix", "/home/ada/.hermes-old", "/home/ada/.hermes-old"),
        ("nt", "D:\\H\\profiles\\coder", "D:\\H"),
        ("nt", "c:\\users\\ada\\appdata\\local\\HERMES\\profiles\\coder", "C:\\Users\\Ada\\AppData\\Local\\hermes"),
    ],
)
def test_a_profile_belongs_to_the_home_above_it(os_name: str, path: str, expected: str) -> None:
    default = "C:\\Users\\Ada\\AppData\\Local\\hermes" if os_name == "nt" else "/home/ada/.hermes"

    assert root_of(path, default, os_name) == expected


def test_a_home_below_a_folder_called_profiles_stays_itself() -> None:
    assert root_of("/srv/profiles/.hermes", "/srv/profiles/.hermes", "posix") == "/srv/profiles/.hermes"


@pytest.fixture
def full(world: World) -> World:
    """A home with two profiles, archives in two of three places, and things that are no profiles."""
    for name in (
        "skills",
        "skills/.archive",
        "profiles/writer/skills",
        "profiles/coder/skills",
        "profiles/coder/skills/.archive",
    ):
        world.skills(f"home/.hermes/{name}")
    world.folder("home/.hermes/profiles/empty")
    world.write("home/.hermes/profiles/notes.txt", "")
    world.config(HERMES)
    return world


EXPECTED = [
    ("hermes", "home/.hermes/skills", "native"),
    ("hermes-coder", "home/.hermes/profiles/coder/skills", "native"),
    ("hermes-writer", "home/.hermes/profiles/writer/skills", "native"),
    ("hermes.archive", "home/.hermes/skills/.archive", "archived"),
    ("hermes-coder.archive", "home/.hermes/profiles/coder/skills/.archive", "archived"),
]


@pytest.mark.requirement("R205", "R207")
def test_a_home_becomes_a_source_for_each_folder_that_exists(full: World) -> None:
    settings = full.load()

    assert unfolded(full) == EXPECTED
    assert {source.group for source in settings.sources} == {"hermes"}
    assert {source.harness for source in settings.sources} == {"hermes"}
    assert {source.declared for source in settings.sources} == {"hermes"}
    assert settings.warnings == ()


@pytest.mark.requirement("R206")
@pytest.mark.parametrize(
    "value",
    ["~/.hermes", "~/.hermes/", "~/.hermes/profiles/coder", "~/.hermes/profiles/coder/../coder/", "${HOME}/.hermes"],
)
def test_the_same_home_is_found_however_hermes_home_points_at_it(full: World, value: str) -> None:
    full.env |= {"HERMES_HOME": value, "HOME": str(full.home)}

    assert unfolded(full) == EXPECTED


@pytest.mark.requirement("R204")
def test_hermes_home_wins_over_the_default(full: World) -> None:
    full.skills("opt/h/skills")
    full.env["HERMES_HOME"] = str(full.root / "opt/h")

    assert unfolded(full) == [("hermes", "opt/h/skills", "native")]


def test_hermes_home_may_stand_in_the_env_file(full: World) -> None:
    full.skills("here/h/profiles/p/skills")
    full.write("here/.env", "HERMES_HOME=h\n")

    assert unfolded(full) == [("hermes-p", "here/h/profiles/p/skills", "native")]


@pytest.mark.parametrize("path", ["~/other", "~/other/skills", "~/other/profiles/p"])
def test_a_path_wins_over_hermes_home(full: World, path: str) -> None:
    full.skills("home/other/skills")
    full.skills("home/other/profiles/p/skills")
    full.env["HERMES_HOME"] = str(full.root / "nowhere")
    full.config(HERMES + f'path = "{path}"\n')

    assert unfolded(full) == [
        ("hermes", "home/other/skills", "native"),
        ("hermes-p", "home/other/profiles/p/skills", "native"),
    ]


def test_without_profiles_only_the_home_in_use_is_read(full: World) -> None:
    full.config('[[sources]]\nname = "h"\nharness = "hermes"\n')
    assert unfolded(full) == [("h", "home/.hermes/skills", "native")]

    full.env["HERMES_HOME"] = str(full.home / ".hermes/profiles/coder")
    assert unfolded(full) == [("h", "home/.hermes/profiles/coder/skills", "native")]


def test_a_state_of_the_block_is_that_of_the_living_folders(full: World) -> None:
    full.config(HERMES + 'state = "cold"\ngroup = "mine"\nexclude = ["x"]\n')
    sources = full.load().sources

    assert [source.state for source in sources] == ["cold", "cold", "cold", "archived", "archived"]
    assert {(source.group, source.exclude) for source in sources} == {("mine", ("x",))}


def test_a_home_that_does_not_exist_gives_no_source_and_one_warning(world: World) -> None:
    world.config(HERMES)

    assert unfolded(world) == []
    assert world.warns()[0] == (
        'source "hermes" has no skills: no Hermes skill folder exists in home/.hermes',
        "here/sources.toml:1",
        "set HERMES_HOME or path, or set enabled = false",
    )


def test_a_folder_that_is_no_profile_is_left_out_and_said(full: World) -> None:
    full.skills("home/.hermes/profiles/coder.bak/skills")

    assert unfolded(full) == EXPECTED
    assert full.warns() == [
        (
            'a folder beside the Hermes profiles is left out: "coder.bak" is no profile\'s name',
            "home/.hermes/profiles/coder.bak",
            "rename it, or add it as a source of its own",
        )
    ]


def test_a_profile_called_archive_does_not_take_the_name_of_the_archive(full: World) -> None:
    full.skills("home/.hermes/profiles/archive/skills")
    names = [name for name, _, _ in unfolded(full)]

    assert len(names) == len(set(names)) == 6
    assert "hermes-archive" in names


def test_a_block_that_has_the_name_of_a_profile_is_refused_with_both_places(full: World) -> None:
    full.skills("here/library")
    full.config('[[sources]]\nname = "Hermes-Coder"\npath = "library"\n\n' + HERMES)

    assert full.fails() == (
        'two sources are called "hermes-coder": one from "Hermes-Coder" on line 1, one from "hermes"',
        "here/sources.toml:5",
        "rename one of the two blocks",
    )


def test_a_profile_that_links_to_another_is_said_to_be_the_same_folder(full: World) -> None:
    (full.home / ".hermes/profiles/twin").symlink_to(full.home / ".hermes/profiles/coder")
    full.config(HERMES)

    assert (
        full.warns()[0][0]
        == 'source "hermes-twin" is the same folder as source "hermes-coder", so its skills are found twice'
    )
