"""What README says about commands and exit codes is what the program does."""

from __future__ import annotations

import re
import sys
from subprocess import CompletedProcess

import pytest

from serve.errors import ExitCode
from tests.support import ROOT, run

README = (ROOT / "README.md").read_text(encoding="utf-8")


def retrieval(*arguments: str) -> CompletedProcess[str]:
    return run([sys.executable, "-c", "from pipeline.cli import main; main()", *arguments])


def block(name: str) -> str:
    found = re.search(f"<!-- begin {name} -->\n(.*?)<!-- end {name} -->", README, flags=re.DOTALL)
    assert found, f"README has no block {name}"
    return found[1]


def first_column(table: str) -> list[str]:
    return [line.split("|")[1].strip() for line in table.splitlines()[2:]]


def documented_commands() -> list[str]:
    return [cell.strip("`").split()[1] for cell in first_column(block("commands"))]


def test_every_exit_code_stands_in_the_readme() -> None:
    assert first_column(block("exit-codes")) == [str(int(code)) for code in ExitCode]


def test_every_command_of_the_program_stands_in_the_readme() -> None:
    shown = retrieval("--help")
    assert shown.returncode == 0, shown.stderr
    _, _, listed = shown.stdout.partition("Commands")
    offered = set(re.findall(r"^[\s│]+([a-z][a-z-]*)\s{2,}\S", listed, flags=re.MULTILINE))

    assert offered - {"sync"} == set(documented_commands())


@pytest.mark.parametrize("command", documented_commands())
def test_every_command_of_the_readme_has_help(command: str) -> None:
    shown = retrieval(command, "--help")

    assert shown.returncode == 0, shown.stderr
    # A group's commands have their own help, and `serve` speaks a protocol.
    assert "--json" in shown.stdout or "Commands:" in shown.stdout or command == "serve"


def test_options_that_the_readme_names_exist() -> None:
    rows = [line for line in block("commands").splitlines()[2:] if "--" in line]
    for row in rows:
        command = row.split("`")[1].split()[1]
        shown = retrieval(command, "--help").stdout
        assert [option for option in re.findall(r"--[a-z][a-z-]*", row) if option not in shown] == [], command


def test_the_first_search_is_shown_with_its_result() -> None:
    assert "```" in block("first-search")
