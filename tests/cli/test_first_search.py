"""README's first search is what the program answers on the bundled example library, and its three commands work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support import ROOT
from tests.test_readme import README, block

MOVING = re.compile(r"\d\.\d{3}$|index [0-9a-f]{8}, .* old$")


def test_the_first_search_in_the_readme_is_the_real_answer(tmp_path: Path, command: Command) -> None:
    question, *answer = block("first-search").strip().splitlines()[1:-1]
    assert command(tmp_path, "init").code == 0
    assert command(tmp_path, "build").code == 0

    ended = command(tmp_path, *shlex.split(question.removeprefix("$ .venv/bin/retrieval ")))

    assert ended.code == 0
    assert [MOVING.sub("", line) for line in ended.lines] == [MOVING.sub("", line) for line in answer]


def test_the_three_commands_of_the_readme_lead_to_an_answer(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "skill-library").symlink_to(ROOT / "examples" / "library" / "security")
    commands = re.search(r"In three commands.*?```sh\n(.*?)```", README, flags=re.DOTALL)
    assert commands is not None

    for line in commands[1].splitlines():
        ended = command(tmp_path, *shlex.split(line, comments=True)[1:])
        assert (ended.code, ended.err) == (0, ""), line

    assert ended.lines[0].startswith("1. ")
