"""Help and version: complete, current, and the same as in the documentation."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from pipeline.cli.app import app
from pipeline.cli.codes import MEANINGS
from pipeline.cli.reference import page
from serve.contract import CONTRACT_VERSION
from tests.cli.conftest import Command
from tests.support import ROOT, run
from tests.world import World

GROUPS = {
    str(group.typer_instance.info.name): [
        found.name or found.callback.__name__ for found in group.typer_instance.registered_commands
    ]
    for group in app.registered_groups
}
COMMANDS = [found.name or found.callback.__name__ for found in app.registered_commands if found.callback]


def test_help_lists_every_command_in_a_whole_sentence_and_every_exit_code(tmp_path: Path, command: Command) -> None:
    ended = command(tmp_path, "--help")

    assert (ended.code, ended.err) == (0, "")
    listed = dict(
        re.findall(r"^  ([a-z]+)  +(\S.*)$", ended.out.partition("Commands:")[2].partition("\n\n")[0], re.MULTILINE)
    )
    assert set(listed) == (set(COMMANDS) | set(GROUPS)) - {"sync"}
    assert all(text.endswith(".") and not text.endswith("..") for text in listed.values())
    assert [line.split(maxsplit=1) for line in ended.out.partition("Exit codes:\n")[2].splitlines()] == [
        [str(int(code)), meaning] for code, meaning in MEANINGS.items()
    ]


def test_no_command_is_a_usage_error_that_shows_the_help(tmp_path: Path, command: Command) -> None:
    ended = command(tmp_path)

    assert (ended.code, ended.out) == (2, command(tmp_path, "--help").out)


@pytest.mark.parametrize("name", [*COMMANDS, *(f"{group} {name}" for group in GROUPS for name in GROUPS[group])])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_help_and_json(name: str, flag: str, tmp_path: Path, command: Command) -> None:
    ended = command(tmp_path, *name.split(), flag)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: retrieval {name} [OPTIONS]")
    assert "--json" in ended.out or name == "serve"  # which speaks a protocol
    assert "--config" in ended.out
    assert max(map(len, ended.lines)) <= 80
    assert ended.out.isascii()


def test_the_version_is_told_as_text_and_as_json(tmp_path: Path, command: Command) -> None:
    text = command(tmp_path, "--version")
    as_json = command(tmp_path, "--version", "--json").json

    assert as_json["contract"] == CONTRACT_VERSION
    assert text.out == f"retrieval {as_json['version']}, contract {CONTRACT_VERSION}\n"


def test_json_before_a_command_is_refused_and_says_where_it_belongs(tmp_path: Path, command: Command) -> None:
    ended = command(tmp_path, "--json", "build")

    assert ended.code == 2
    assert "`retrieval build --json`" in ended.json["error"]


def test_the_page_of_commands_is_current() -> None:
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == page()


def test_the_command_on_the_page_prints_the_page() -> None:
    found = re.search(r"`python (-m \S+) > docs/cli.md`", page())
    assert found is not None

    assert run([sys.executable, *found[1].split()]).stdout == page()


def test_the_page_names_every_field_of_an_answer(library: World, command: Command) -> None:
    answer = command(library, "search", "sql", "--explain", "--json").json
    text = page()

    fields = [*answer, *answer["results"][0], *answer["lanes"]["lexical"]]
    assert [field for field in fields if f"`{field}`" not in text] == []


def test_the_error_on_the_page_is_the_programs(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.config.write_text('[[sources]]\n\n\n\n\nname = "main"\npth = "x"\n', encoding="utf-8")

    ended = command(world, "build")

    assert ended.err.replace(str(world.config), "/home/me/.config/retrieval/sources.toml") in page()
