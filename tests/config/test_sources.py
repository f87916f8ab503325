"""What the blocks of sources.toml become."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.config.guess import harness_of, state_of
from pipeline.errors import UnknownSourceError

if TYPE_CHECKING:
    from tests.config.conftest import World


def block(name: str, path: str = "", more: str = "") -> str:
    return f'[[sources]]\nname = "{name}"\n' + (f'path = "{path}"\n' if path else "") + more + "\n"


@pytest.mark.requirement("R061")
def test_a_plain_folder_is_a_cold_library(world: World) -> None:
    folder = world.skills("here/library")
    world.config(block("library", "library"))
    settings = world.load()
    (source,) = settings.sources

    assert (source.name, source.declared, source.kind, source.path) == ("library", "library", "skills", folder)
    assert (source.state, source.harness, source.group) == ("cold", "", "")
    assert (source.include, source.exclude, source.enabled, source.available) == ((), (), True, True)
    assert world.short(source.where) == "here/sources.toml:1"
    assert settings.warnings == ()


@pytest.mark.requirement("R062")
def test_everything_that_a_block_says_arrives(world: World) -> None:
    world.skills("home/tree")
    more = 'kind = "skills"\nstate = "hidden"\nharness = "codex"\ngroup = "ours"\ninclude = ["web/**", "./data"]\nexclude = ["**\\\\drafts"]\n'
    world.config(block("tree", "~/tree", more))
    (source,) = world.load().sources

    assert (source.state, source.harness, source.group) == ("hidden", "codex", "ours")
    assert source.include == ("web/**", "data")
    assert source.exclude == ("**/drafts",)


def test_sources_keep_the_order_of_the_file(world: World) -> None:
    for name in "cab":
        world.skills(f"here/{name}")
    world.config("".join(block(name, name) for name in "cab"))

    assert [source.name for source in world.load().sources] == ["c", "a", "b"]


@pytest.mark.requirement("R222")
@pytest.mark.parametrize(
    ("path", "make", "fault"),
    [
        ("gone", None, "the folder here/gone does not exist"),
        ("file", "file", "the folder here/file is not a folder"),
        (
            "C:\\\\Users\\\\Ada\\\\skills",
            None,
            "the folder here/C:\\Users\\Ada\\skills is a Windows path, which this system does not have",
        ),
        ("x" * 300, None, "the folder here/" + "x" * 300 + " cannot be reached: File name too long"),
    ],
)
def test_a_missing_folder_is_a_warning_and_is_marked(world: World, path: str, make: str | None, fault: str) -> None:
    if make:
        world.write(f"here/{make}", "")
    world.config(block("ghost", path))
    settings = world.load()

    assert [source.available for source in settings.sources] == [False]
    assert [world.told(warning) for warning in settings.warnings] == [
        (
            f'source "ghost" has no skills: {fault}',
            "here/sources.toml:3",
            "create or mount it, correct the path, or set enabled = false",
        )
    ]


def test_links_are_kept_as_they_are_written(world: World) -> None:
    world.skills("real")
    (world.cwd / "link").symlink_to(world.root / "real")
    world.config(block("linked", "link"))

    assert world.load().sources[0].path == world.cwd / "link"


def test_a_disabled_source_is_listed_and_nothing_of_it_is_looked_at(world: World) -> None:
    world.skills("here/library")
    world.config(block("off", "${NOT_SET_UP}/x", "enabled = false\n") + block("library", "library"))
    settings = world.load()

    assert [(source.name, source.enabled) for source in settings.sources] == [("off", False), ("library", True)]
    assert str(settings.sources[0].path) == "${NOT_SET_UP}/x"
    assert settings.warnings == ()


@pytest.mark.parametrize("kind", ["workflows", "context_mode", "hermes_sessions"])
def test_a_later_kind_is_left_out_and_says_so(world: World, kind: str) -> None:
    world.skills("here/library")
    world.config(block("library", "library") + block("later", "x", f'kind = "{kind}"\n'))
    settings = world.load()

    assert [source.name for source in settings.sources] == ["library"]
    assert [world.told(warning) for warning in settings.warnings] == [
        (
            f'source "later" is left out: this version does not read kind "{kind}" yet',
            "here/sources.toml:5",
            "set enabled = false until a later version does",
        )
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", block("off", "x", "enabled = false\n")])
def test_a_configuration_without_an_enabled_source_says_so(world: World, text: str) -> None:
    world.config(text)

    assert world.warns() == [
        ("no source is enabled, so there is nothing to index", "here/sources.toml", "add a [[sources]] block")
    ]


@pytest.mark.requirement("R066")
def test_nothing_is_read_that_no_block_names(world: World) -> None:
    world.skills("home/.hermes/skills")
    world.skills("home/.omp/agent/skills")
    world.skills("here/library")
    world.config(block("library", "library"))

    assert [source.path for source in world.load().sources] == [world.cwd / "library"]


def test_relative_paths_start_at_the_file_and_not_at_the_current_folder(world: World) -> None:
    folder = world.skills("etc/library")
    config = world.write("etc/mine.toml", block("library", "library"))

    assert world.load(config).sources[0].path == folder


def test_a_variable_from_the_env_file_may_begin_with_a_tilde(world: World) -> None:
    folder = world.skills("home/Hermes/skill-library")
    world.write("here/.env", "HERMES_PROJECTS_DIR=~/Hermes\nRETRIEVAL_NAMESPACE=ada\n")
    world.config(block("a", "${HERMES_PROJECTS_DIR}/skill-library"))

    assert world.load().sources[0].path == folder


@pytest.mark.parametrize(
    ("path", "harness", "state"),
    [
        ("/home/ada/.hermes/skills", "hermes", "native"),
        ("/home/ada/.hermes/skills/web", "hermes", "native"),
        ("/home/ada/.hermes/skills/.archive", "hermes", "archived"),
        ("/home/ada/.hermes/profiles/coder/skills", "hermes", "native"),
        ("/home/ada/.hermes/profiles/coder/skills/.archive", "hermes", "archived"),
        ("/opt/h/skills", "hermes", "native"),
        ("/opt/h/workspace", "", "cold"),
        ("/home/ada/.omp/agent/skills", "omp", "native"),
        ("/home/ada/.claude/skills", "claude", "native"),
        ("/home/ada/.codex/skills", "codex", "native"),
        ("/home/ada/.gemini/skills", "gemini", "native"),
        ("/home/ada/.config/opencode/skill", "opencode", "native"),
        ("/home/ada/.config/opencode/skills", "opencode", "native"),
        ("/home/ada/project/.claude/skills", "", "cold"),
        ("/home/ada/.hermes/plugins", "", "cold"),
        ("/home/ada/skills", "", "cold"),
        ("/srv/library/.archive", "", "cold"),
        ("/srv/not.hermes/skills", "", "cold"),
    ],
)
@pytest.mark.requirement("R061")
def test_harness_and_state_follow_from_the_path(path: str, harness: str, state: str) -> None:
    found = harness_of(path, home="/home/ada", hermes_home="/opt/h", os_name="posix")

    assert (found, state_of(path, found, "posix")) == (harness, state)


def test_windows_paths_are_guessed_in_any_case(world: World) -> None:
    kind = {"home": "C:\\Users\\Ada", "hermes_home": "C:\\Users\\Ada\\AppData\\Local\\hermes", "os_name": "nt"}

    assert harness_of("c:\\users\\ada\\appdata\\local\\hermes\\skills", **kind) == "hermes"
    assert harness_of("C:\\Users\\Ada\\.claude\\skills", **kind) == "claude"
    assert harness_of("D:\\skills", **kind) == ""


def test_what_the_block_says_wins_over_the_path(world: World) -> None:
    world.skills("home/.hermes/skills")
    world.skills("home/.omp/agent/skills")
    world.config(
        block("a", "~/.hermes/skills", 'state = "cold"\n') + block("b", "~/.omp/agent/skills", 'harness = "codex"\n')
    )

    assert [(source.harness, source.state) for source in world.load().sources] == [
        ("hermes", "cold"),
        ("codex", "native"),
    ]


# --- choosing some of them


@pytest.fixture
def chosen(world: World) -> World:
    for name in ("a", "b", "home/.hermes/skills", "home/.hermes/profiles/coder/skills"):
        world.skills(name if name.startswith("home") else f"here/{name}")
    hermes = block("hermes", more='harness = "hermes"\nprofiles = true\n')
    world.config(block("a", "a") + hermes + block("b", "b") + block("off", "x", "enabled = false\n"))
    return world


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ["a", "hermes", "hermes-coder", "b"]),
        (["b", "a"], ["a", "b"]),
        (["hermes"], ["hermes", "hermes-coder"]),
        (["hermes-coder"], ["hermes-coder"]),
        (["a", "a"], ["a"]),
    ],
)
def test_sources_are_picked_by_name_in_the_order_of_the_file(
    chosen: World, names: list[str], expected: list[str]
) -> None:
    assert [source.name for source in chosen.load().pick(names)] == expected


@pytest.mark.parametrize(
    ("name", "what", "next_step"),
    [
        ("hermess", 'there is no source "hermess"', 'did you mean "hermes"?'),
        ("zzz", 'there is no source "zzz"', "known are a, b, hermes, hermes-coder, off"),
        ("off", 'source "off" is disabled', "set enabled = true"),
    ],
)
def test_a_name_that_cannot_be_picked_is_one_clear_error(chosen: World, name: str, what: str, next_step: str) -> None:
    with pytest.raises(UnknownSourceError) as caught:
        chosen.load().pick(["a", name])

    assert (caught.value.what, caught.value.next_step, caught.value.code) == (what, next_step, 2)
