"""How the programs that tests run for real are installed: whole, once, and of the version that is stated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.programs import DESCRIBED, INSTALLED_BY, environment_for, find
from tests.support import needs, run

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

PROVIDE = """
set -euo pipefail
root=$1
fail() { printf 'error: %s\\n  next: %s\\n' "$1" "$2" >&2; exit 1; }
. "$2"
provide thing
command -v thing
"""
BUILD = """
version=1.2
commands="thing"
build() {
  mkdir -p "$1/bin"
  printf '#!/bin/sh\\n' >"$1/bin/thing"
  chmod +x "$1/bin/thing"
  printf 'built\\n' >>"$root/log"
  [ ! -e "$root/break" ] || exit 9
}
"""


@pytest.fixture
def provide(tmp_path: Path) -> Path:
    """A checkout that describes one program."""
    (tmp_path / ".ci" / "programs").mkdir(parents=True)
    (tmp_path / ".ci" / "programs" / "thing.sh").write_text(BUILD, encoding="utf-8")
    return tmp_path


def provided(root: Path) -> CompletedProcess[str]:
    script = [needs("bash"), "-c", PROVIDE, "bash", root, DESCRIBED / "provide.sh"]
    return run(script, environment={"PATH": "/usr/bin:/bin", "HOME": str(root), "XDG_CACHE_HOME": str(root / "cache")})


def test_a_program_is_installed_once_and_then_found(provide: Path) -> None:
    first, second = provided(provide), provided(provide)

    path = provide / "cache" / "retrieval-ci" / "thing-1.2" / "bin" / "thing"
    assert [done.stdout for done in (first, second)] == [f"{path}\n"] * 2, first.stderr
    assert (provide / "log").read_text(encoding="utf-8") == "built\n"


def test_a_half_finished_install_is_not_taken_for_a_whole_one(provide: Path) -> None:
    (provide / "break").touch()
    broken = provided(provide)
    (provide / "break").unlink()
    mended = provided(provide)

    assert (broken.returncode, mended.returncode) == (9, 0)
    assert (provide / "log").read_text(encoding="utf-8") == "built\nbuilt\n"


def test_an_install_without_the_command_is_an_error_that_names_it(provide: Path) -> None:
    text = BUILD.replace('commands="thing"', 'commands="thing other"')
    (provide / ".ci" / "programs" / "thing.sh").write_text(text, encoding="utf-8")

    done = provided(provide)

    assert done.returncode == 1
    assert done.stderr.startswith("error: thing 1.2 was installed without `other`\n")


@pytest.mark.parametrize("command", ["omp", "hermes", "claude", "codex", "iwec"])
def test_a_program_is_of_the_version_its_file_states(command: str, request: pytest.FixtureRequest) -> None:
    program = request.getfixturevalue(command)
    text = (DESCRIBED / f"{INSTALLED_BY[command]}.sh").read_text(encoding="utf-8")
    stated = re.search(r"^version=(\S+)$", text, re.MULTILINE)

    answered = run([program, "--version"], environment=environment_for(program))

    assert stated is not None
    assert stated[1] in answered.stdout, answered.stderr


def test_ci_installs_every_program_that_is_described() -> None:
    text = (DESCRIBED.parent / "run").read_text(encoding="utf-8")
    listed = re.search(r"^for name in (.+); do$", text, re.MULTILINE)

    assert listed is not None
    assert set(listed[1].split()) == set(INSTALLED_BY.values())
    assert {path.stem for path in DESCRIBED.glob("*.sh")} == {*INSTALLED_BY.values(), "provide"}


def test_a_program_named_in_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.programs.OUTER_ENVIRONMENT", {"PATH": "/usr/bin:/bin", "RETRIEVAL_OMP_COMMAND": "sh"})

    found = find("omp")

    assert found is not None
    assert found.name == "sh"
    assert find("hermes") is None
