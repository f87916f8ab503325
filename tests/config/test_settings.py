"""Where settings are looked for, and which place wins."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.errors import ConfigError
from pipeline.settings import load_settings
from tests.support import run

if TYPE_CHECKING:
    from tests.config.conftest import World

BLOCK = '[[sources]]\nname = "library"\npath = "library"\n'


# --- sources.toml


def test_the_first_place_that_has_a_configuration_wins(world: World) -> None:
    user = world.write("home/.config/retrieval/sources.toml", BLOCK)
    assert world.load().config_file == user

    xdg = world.write("xdg/retrieval/sources.toml", BLOCK)
    world.env["XDG_CONFIG_HOME"] = str(world.root / "xdg")
    assert world.load().config_file == xdg

    here = world.config(BLOCK)
    assert world.load().config_file == here

    named = world.write("named.toml", BLOCK)
    world.env["RETRIEVAL_CONFIG"] = "../named.toml"
    assert world.load().config_file == named

    given = world.write("given.toml", BLOCK)
    assert world.load(given).config_file == given


@pytest.mark.parametrize("text", ["mine.toml", "./mine.toml", "~/../here/mine.toml", "$WHERE/mine.toml"])
def test_config_takes_a_path_as_people_write_it(world: World, text: str) -> None:
    config = world.write("here/mine.toml", BLOCK)
    world.env["WHERE"] = str(world.cwd)

    assert world.load(text).config_file.samefile(config)


def test_a_file_with_a_dollar_in_its_name_is_taken_literally_when_it_exists(world: World) -> None:
    config = world.write("here/a$b.toml", BLOCK)

    assert world.load("a$b.toml").config_file == config


def test_no_configuration_at_all_is_one_clear_error(world: World) -> None:
    assert world.fails() == (
        "there is no sources.toml, neither in the current folder nor in home/.config/retrieval",
        "here/sources.toml",
        "run `retrieval init` to make one, or name one with --config",
    )


@pytest.mark.parametrize("with_sources", [True, False])
def test_a_named_configuration_must_exist(world: World, with_sources: bool) -> None:
    world.config(BLOCK)
    assert world.fails("nope.toml", with_sources=with_sources)[:2] == (
        "there is no configuration file here/nope.toml",
        "--config",
    )

    world.env["RETRIEVAL_CONFIG"] = "nope.toml"
    assert world.fails(with_sources=with_sources)[:2] == (
        "there is no configuration file here/nope.toml",
        "environment variable RETRIEVAL_CONFIG",
    )


def test_a_folder_is_no_configuration(world: World) -> None:
    assert world.fails(world.folder("conf"))[0] == "there is no configuration file conf"


def test_a_command_that_reads_no_sources_needs_no_configuration(world: World) -> None:
    settings = world.load(with_sources=False)

    assert (settings.config_file, settings.sources, settings.uncategorized) == (None, (), "review")
    assert settings.overrides_path == world.home / ".config/retrieval/category-overrides.toml"


def test_a_broken_configuration_does_not_stop_a_command_that_reads_no_sources(world: World) -> None:
    config = world.config("[[[")

    assert world.load(with_sources=False).config_file == config


def test_the_policy_is_review_unless_the_file_says_index(world: World) -> None:
    world.skills("here/library")
    world.config(BLOCK)
    assert world.load().uncategorized == "review"

    world.config(BLOCK + '[policy]\nuncategorized = "index"\n')
    assert world.load().uncategorized == "index"


# --- .env


def test_the_environment_wins_then_the_file_beside_the_configuration_then_the_current_folders(world: World) -> None:
    config = world.write("etc/sources.toml", BLOCK)
    world.write("here/.env", "RETRIEVAL_NAMESPACE=here\nRETRIEVAL_LOCK_TIMEOUT=1\nRETRIEVAL_CHROMA_PORT=1\n")
    world.write("etc/.env", "RETRIEVAL_NAMESPACE=etc\nRETRIEVAL_LOCK_TIMEOUT=2\n")
    world.env |= {"RETRIEVAL_NAMESPACE": "real", "RETRIEVAL_CHROMA_MODE": "server"}
    settings = world.load(config)

    assert (settings.chroma.namespace, settings.lock_timeout, settings.chroma.port) == ("real", 2, 1)
    assert settings.env_files == (world.root / "etc/.env", world.root / "here/.env")
    assert {name: world.short(place) for name, place in settings.origins.items()} == {
        "RETRIEVAL_NAMESPACE": "environment variable RETRIEVAL_NAMESPACE",
        "RETRIEVAL_CHROMA_MODE": "environment variable RETRIEVAL_CHROMA_MODE",
        "RETRIEVAL_LOCK_TIMEOUT": "etc/.env:2",
        "RETRIEVAL_CHROMA_PORT": "here/.env:3",
    }


def test_the_env_file_of_the_current_folder_may_name_the_configuration(world: World) -> None:
    config = world.write("etc/sources.toml", BLOCK)
    world.write("here/.env", "RETRIEVAL_CONFIG=../etc/sources.toml\n")

    assert world.load().config_file == config


def test_naming_the_configuration_beside_itself_is_said_to_have_no_effect(world: World) -> None:
    world.skills("etc/library")
    config = world.write("etc/sources.toml", BLOCK)
    world.write("etc/.env", "\nRETRIEVAL_CONFIG=other.toml\n")

    assert [warning[:2] for warning in world.warns(config)] == [
        ("RETRIEVAL_CONFIG has no effect in the .env file beside the configuration it would name", "etc/.env:2")
    ]


def test_an_unknown_variable_in_a_file_is_told_with_its_line(world: World) -> None:
    world.write("here/.env", "A=1\nRETRIEVAL_HOEM=x\n")

    assert [world.told(warning) for warning in world.load(with_sources=False).warnings] == [
        ("the variable RETRIEVAL_HOEM is unknown and has no effect", "here/.env:2", 'did you mean "RETRIEVAL_HOME"?')
    ]


def test_a_relative_path_in_a_file_starts_at_that_file(world: World) -> None:
    config = world.write("etc/sources.toml", BLOCK)
    world.write("etc/.env", "RETRIEVAL_HOME=data\n")

    assert world.load(config).data_dir == world.root / "etc/data"


# --- data, taxonomy, overrides


def test_the_data_folder_is_named_by_three_places_in_order(world: World) -> None:
    assert world.load(with_sources=False).data_dir == world.home / ".local/share/retrieval"

    world.env["XDG_DATA_HOME"] = "~/xdg"
    assert world.load(with_sources=False).data_dir == world.home / "xdg/retrieval"

    world.env["RETRIEVAL_HOME"] = "mine"
    settings = world.load(with_sources=False)
    assert settings.data_dir == world.cwd / "mine"
    assert settings.projections == world.cwd / "mine/projections"
    assert settings.chroma.path == world.cwd / "mine/chroma"
    assert not settings.data_dir.exists()


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("/", "the data folder cannot be / itself"),
        ("~", "the data folder cannot be home itself"),
        ("file", "the data folder here/file is not a folder"),
        ("$NOPE", "the path uses NOPE, which is not set"),
    ],
)
def test_a_data_folder_that_cannot_serve_is_refused(world: World, value: str, what: str) -> None:
    world.write("here/file", "")
    world.env["RETRIEVAL_HOME"] = value
    message, where, _ = world.fails(with_sources=False)

    assert (message.replace(str(world.home), "home"), where) == (what, "environment variable RETRIEVAL_HOME")


def test_a_relative_xdg_folder_is_an_error(world: World) -> None:
    world.env["XDG_DATA_HOME"] = "data"

    assert world.fails(with_sources=False)[:2] == (
        'XDG_DATA_HOME is relative: "data"',
        "environment variable XDG_DATA_HOME",
    )


def test_the_taxonomy_is_named_or_lies_beside_the_configuration_or_is_the_bundled_one(world: World, root: Path) -> None:
    world.config(BLOCK)
    assert world.load().taxonomy_path == root / "taxonomy.toml"

    beside = world.write("here/taxonomy.toml", "")
    assert world.load().taxonomy_path == beside

    named = world.write("t.toml", "")
    world.env["RETRIEVAL_TAXONOMY"] = "../t.toml"
    assert world.load().taxonomy_path == named

    world.env["RETRIEVAL_TAXONOMY"] = "nope.toml"
    assert world.fails()[:2] == ("there is no taxonomy file here/nope.toml", "environment variable RETRIEVAL_TAXONOMY")


def test_overrides_lie_beside_the_configuration_and_need_not_exist(world: World) -> None:
    world.skills("here/library")
    world.config(BLOCK)
    settings = world.load()

    assert settings.overrides_path == world.cwd / "category-overrides.toml"
    assert settings.warnings == ()


def test_overrides_that_are_named_and_missing_are_a_warning(world: World) -> None:
    world.skills("here/library")
    world.config(BLOCK)
    world.env["RETRIEVAL_CATEGORY_OVERRIDES"] = "mine.toml"

    assert [warning[0] for warning in world.warns()] == [
        "there is no file here/mine.toml, so no category is assigned by hand"
    ]
    world.write("here/mine.toml", "")
    assert world.warns() == []


# --- the process itself


def test_home_comes_from_the_environment_that_is_given(world: World) -> None:
    settings = load_settings(environ={"HOME": str(world.home)}, cwd=world.cwd, with_sources=False)

    assert settings.data_dir == world.home / ".local/share/retrieval"


def test_the_process_is_read_when_nothing_is_given(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.skills("here/library")
    world.config(BLOCK)
    monkeypatch.chdir(world.cwd)
    monkeypatch.setenv("HOME", str(world.home))
    monkeypatch.setenv("RETRIEVAL_NAMESPACE", "mine")
    settings = load_settings()

    assert settings.config_file == world.cwd / "sources.toml"
    assert settings.chroma.namespace == "mine"


def test_a_current_folder_that_is_gone_is_one_clear_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = world.folder("gone")
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(ConfigError) as caught:
        load_settings(with_sources=False)
    assert caught.value.what == "the current folder is gone"


LOADED = """
import json, sys
before = set(sys.modules)
from pipeline.settings import load_settings
load_settings({arguments})
print(json.dumps(sorted(set(sys.modules) - before)))
"""
HEAVY = {
    "asyncio",
    "blake3",
    "difflib",
    "doit",
    "dotenv",
    "email",
    "logging",
    "msgspec",
    "pydantic",
    "rich",
    "tomlkit",
    "typer",
    "watchfiles",
    "yaml",
}


@pytest.mark.parametrize(("arguments", "toml"), [("'sources.toml'", True), ("with_sources=False", False)])
def test_reading_settings_imports_nothing_heavy(world: World, root: Path, arguments: str, toml: bool) -> None:
    world.skills("here/library")
    world.config(BLOCK)
    environment = {"HOME": str(world.home), "PYTHONPATH": str(root)}
    result = run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {str(root)!r})" + LOADED.format(arguments=arguments),
        ],
        cwd=world.cwd,
        environment=environment,
    )
    assert result.returncode == 0, result.stderr
    loaded = {name.partition(".")[0] for name in json.loads(result.stdout)}

    assert loaded & HEAVY == set()
    assert ("tomllib" in loaded) == toml
