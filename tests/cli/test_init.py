"""`init` writes a first configuration where the other commands look for it, and never touches one that exists."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.settings import load_settings
from tests.cli.conftest import Command
from tests.support import ROOT, lacking


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def skill_folder(path: Path) -> Path:
    (path / "one").mkdir(parents=True)
    (path / "one" / "SKILL.md").write_text(
        "---\nname: one\ndescription: SQL database queries.\n---\n", encoding="utf-8"
    )
    return path


def test_without_folders_it_is_the_example_library_in_the_persons_own_folder(
    home: Path, here: Path, command: Command
) -> None:
    ended = command(here, "init")

    target = home / ".config" / "retrieval" / "sources.toml"
    examples = ROOT / "examples" / "library"
    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [
        f"wrote {target}",
        f"  examples: {examples} (cold)",
        "next: look it over, then run `retrieval build`",
    ]
    settings = load_settings(cwd=here)
    assert settings.config_file == target
    assert [(source.name, source.path, source.state) for source in settings.sources] == [("examples", examples, "cold")]
    assert settings.warnings == ()


@pytest.mark.requirement("R054")
def test_an_existing_file_is_left_as_it_is(home: Path, here: Path, command: Command) -> None:
    first = command(here, "init", "--json").json
    Path(first["config"]).write_text("# mine\n", encoding="utf-8")

    again = command(here, "init")
    with_folders = command(here, "init", str(skill_folder(here / "lib")))

    assert first["written"] is True
    assert (again.code, again.lines[0]) == (0, f"left as it is: {first['config']}")
    assert (with_folders.code, with_folders.out) == (2, "")
    assert with_folders.err == (
        "error: there is a sources.toml already, and the folders were not added\n"
        f"  at {first['config']}\n"
        "  next: add a [[sources]] block for each to that file, or name another file with --config\n"
    )
    assert command(here, "init", ".", "--json").code == 2
    assert Path(first["config"]).read_text(encoding="utf-8") == "# mine\n"


def test_the_current_folders_file_is_the_one_in_force(home: Path, here: Path, command: Command) -> None:
    (here / "sources.toml").write_text("# mine\n", encoding="utf-8")

    ended = command(here, "init", "--json")

    assert ended.json == {"config": str(here / "sources.toml"), "written": False, "sources": []}
    assert not (home / ".config").exists()


def test_a_variable_and_an_env_file_name_the_file_as_for_every_command(
    home: Path, here: Path, command: Command
) -> None:
    named = command(here, "init", "--json", RETRIEVAL_CONFIG="~/a/sources.toml").json
    (here / ".env").write_text("RETRIEVAL_CONFIG=b/mine.toml\n", encoding="utf-8")
    from_file = command(here, "init", "--json").json

    assert named["config"] == str(home / "a" / "sources.toml")
    assert from_file["config"] == str(here / "b" / "mine.toml")
    assert load_settings(cwd=here).config_file == here / "b" / "mine.toml"


def test_an_option_names_the_file_and_the_next_step_repeats_it(home: Path, here: Path, command: Command) -> None:
    ended = command(here, "init", "--config", "~/x y/s.toml")

    assert ended.lines[0] == f"wrote {home / 'x y' / 's.toml'}"
    assert ended.lines[-1] == "next: look it over, then run `retrieval build --config '~/x y/s.toml'`"
    assert (home / "x y" / "s.toml").is_file()


AWKWARD = (
    "plain",
    "with space",
    'quote"back\\slash',
    "dollar$HOME${X}$$",
    "\u65e5\u672c",
    "--dash",
    "%PATH%",
    "a~b",
)


@pytest.mark.parametrize("name", AWKWARD, ids=ascii)
def test_a_folder_of_any_name_is_found_again(name: str, home: Path, here: Path, command: Command) -> None:
    folder = skill_folder(here / name)

    ended = command(here, "init", "--json", "--", name)

    assert ended.code == 0, ended
    assert [source.path for source in load_settings(cwd=here).sources] == [folder]


def test_several_folders_get_names_of_their_own(home: Path, here: Path, command: Command) -> None:
    folders = [skill_folder(here / part) for part in ("a/skills", "b/Skills", "c/---", "d/skills")]

    command(here, "init", *map(str, folders), str(folders[0]))

    assert [(source.name, source.path) for source in load_settings(cwd=here).sources] == [
        ("skills", folders[0]),
        ("Skills-2", folders[1]),
        ("skills-3", folders[2]),
        ("skills-4", folders[3]),
    ]


def test_a_harnesss_own_folder_is_recognized(home: Path, here: Path, command: Command) -> None:
    claude = skill_folder(home / ".claude" / "skills")

    ended = command(here, "init", "~/.claude/skills")

    assert ended.lines[1] == f"  claude: {claude} (native of claude)"
    assert [(s.name, s.state, s.harness) for s in load_settings(cwd=here).sources] == [("claude", "native", "claude")]


@pytest.mark.requirement("R205")
def test_a_hermes_home_stands_for_its_profiles(home: Path, here: Path, command: Command) -> None:
    skill_folder(home / ".hermes" / "skills")
    skill_folder(home / ".hermes" / "profiles" / "work" / "skills")

    command(here, "init", str(home / ".hermes"))

    assert [(s.name, s.state, s.harness) for s in load_settings(cwd=here).sources] == [
        ("hermes", "native", "hermes"),
        ("hermes-work", "native", "hermes"),
    ]


def test_what_is_no_folder_is_refused_and_nothing_is_written(home: Path, here: Path, command: Command) -> None:
    (here / "file").write_text("x", encoding="utf-8")

    for name in ("nowhere", "file"):
        ended = command(here, "init", name)
        assert ended.code == 2
        assert ended.err == f"error: there is no such folder\n  at {here / name}\n  next: name a folder of skills\n"
    assert not (home / ".config").exists()


@pytest.mark.parametrize("name", [b"caf\xe9", b"two\nlines", b"d\x7fel"], ids=repr)
def test_a_folder_that_the_file_could_not_name_is_refused(
    name: bytes, home: Path, here: Path, command: Command
) -> None:
    try:
        skill_folder(here / os.fsdecode(name))
    except OSError:
        lacking("a file system that takes any name", "run the tests on another one")

    ended = command(here, "init", os.fsdecode(name))

    assert ended.code == 2
    assert ended.err.startswith("error: the path holds a character that no path should: ")
    assert len(ended.err.splitlines()) == 3
    assert not (home / ".config").exists()


def test_a_link_to_nothing_is_not_written_over(home: Path, here: Path, command: Command) -> None:
    target = home / ".config" / "retrieval" / "sources.toml"
    target.parent.mkdir(parents=True)
    target.symlink_to("elsewhere.toml")

    assert command(here, "init", "--json").json["written"] is False
    assert target.is_symlink()


def test_three_commands_lead_from_a_folder_to_an_answer(home: Path, here: Path, command: Command) -> None:
    skill_folder(here / "lib")

    assert command(here, "init", "lib").code == 0
    assert command(here, "build").code == 0
    answer = command(here, "search", "database", "--json").json

    assert [row["id"] for row in answer["results"]] == ["lib:one"]
