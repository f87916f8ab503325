"""setup.sh: which Python it takes, what it says when there is none, and a first answer from a fresh clone."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support import OUTER_ENVIRONMENT, ROOT, needs, own_files, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# What the script calls before it has an environment.
TOOLS = ("bash", "dirname", "sed", "env", "rm", "tail")
SOURCED = 'set -euo pipefail; root=$1; . "$root/.ci/environment.sh"; '


def ids(text: str) -> list[str]:
    """The IDs of a printed answer, each on a line of its own."""
    return re.findall(r"^ +([\w-]+:[\w/.-]+)$", text, flags=re.MULTILINE)


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """A PATH with the given programs on it: texts of shell scripts by name."""

    def with_programs(**programs: str) -> dict[str, str]:
        folder = tmp_path / "bin"
        folder.mkdir()
        for tool in TOOLS:
            (folder / tool).symlink_to(needs(tool))
        for name, script in programs.items():
            program = folder / name.replace("_", ".")
            program.write_text(f"#!{needs('bash')}\n{script}\n", encoding="utf-8")
            program.chmod(0o755)
        return {"PATH": str(folder), "HOME": str(tmp_path)}

    return with_programs


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what setup.sh needs, in a folder whose name has a space."""
    folder = tmp_path / "a clone"
    folder.mkdir()
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    shutil.copy2(ROOT / "setup.sh", folder)
    return folder


OLD = 'case "$*" in *--version*) echo "Python 3.8.1" ;; *) exit 1 ;; esac'
FITTING = f'exec "{sys.executable}" "$@"'


def test_a_machine_whose_python_is_too_old_is_told_what_to_do(
    checkout: Path, machine: Callable[..., dict[str, str]]
) -> None:
    result = run([checkout / "setup.sh"], cwd=checkout, environment=machine(python3=OLD))

    assert result.returncode == 1
    assert "error: Retrieval needs Python 3.11, 3.12 or 3.13; python3 here is: Python 3.8.1" in result.stderr
    assert "  next: " in result.stderr
    assert not (checkout / ".venv").exists()


def test_a_newer_python_beside_an_old_python3_is_taken(checkout: Path, machine: Callable[..., dict[str, str]]) -> None:
    environment = machine(python3=OLD, python3_12=FITTING)
    result = run(["bash", "-c", SOURCED + "find_python", "x", checkout], environment=environment)

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.strip() == getattr(sys, "_base_executable", sys.executable)


def test_a_named_python_that_does_not_fit_is_refused(checkout: Path, machine: Callable[..., dict[str, str]]) -> None:
    environment = machine(python3=FITTING, old=OLD) | {"RETRIEVAL_PYTHON": "old"}
    result = run([checkout / "setup.sh"], cwd=checkout, environment=environment)

    assert result.returncode == 1
    assert "error: RETRIEVAL_PYTHON=old is not a Python 3.11, 3.12 or 3.13" in result.stderr


def test_a_folder_in_the_way_of_the_environment_is_left_alone(
    checkout: Path, machine: Callable[..., dict[str, str]]
) -> None:
    kept = checkout / ".venv/mine.txt"
    kept.parent.mkdir()
    kept.write_text("mine", encoding="utf-8")
    result = run([checkout / "setup.sh"], cwd=checkout, environment=machine(python3=FITTING))

    assert result.returncode == 1
    assert f"error: {checkout}/.venv is in the way" in result.stderr
    assert kept.read_text(encoding="utf-8") == "mine"


def test_a_machine_without_uv_and_pip_is_told_what_to_install(
    checkout: Path, machine: Callable[..., dict[str, str]]
) -> None:
    script = SOURCED + "base=bare; get_uv"
    result = run(["bash", "-c", script, "x", checkout], environment=machine(bare="exit 1"))

    assert result.returncode == 1
    assert "has neither uv nor pip" in result.stderr
    assert "python3-venv" in result.stderr


SHOW_INDEX = SOURCED + 'uv=uv; base=pip-knows; pip=""; carry_index_settings; env | sed -n "/^UV_/p"'
PIP_CONFIG = 'printf "%s\\n" "global.index-url=\'https://index.example/simple\'" "global.find-links=\'one two\'"'


def test_an_index_that_only_pip_knows_is_told_to_uv(checkout: Path, machine: Callable[..., dict[str, str]]) -> None:
    environment = machine(**{"pip-knows": PIP_CONFIG, "tr": f'exec {needs("tr")} "$@"'})
    result = run(["bash", "-c", SHOW_INDEX, "x", checkout], environment=environment)

    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [
        "UV_DEFAULT_INDEX=https://index.example/simple",
        "UV_FIND_LINKS=one,two",
    ]


def test_an_index_that_uv_knows_is_left_alone(checkout: Path, machine: Callable[..., dict[str, str]]) -> None:
    environment = machine(**{"pip-knows": PIP_CONFIG}) | {"UV_DEFAULT_INDEX": "https://mine.example/simple"}
    result = run(["bash", "-c", SHOW_INDEX, "x", checkout], environment=environment)

    assert result.stdout.splitlines() == ["UV_DEFAULT_INDEX=https://mine.example/simple"]


def test_an_unknown_argument_is_a_usage_error(checkout: Path) -> None:
    result = run([checkout / "setup.sh", "--fast"], cwd=checkout)

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("usage: ./setup.sh")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that Git has or would take, in another place: a clone of the present state."""
    folder = tmp_path_factory.mktemp("fresh") / "a clone"
    for file in own_files():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, folder / file)
    return folder


@pytest.mark.long
@pytest.mark.requirement("R053", "R054", "R057", "R058", "R052")
def test_a_fresh_clone_answers_a_first_search_with_neither_rust_nor_node(
    clone: Path, machine: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    """An empty home, a PATH with Python and the usual tools; run twice, from another folder, since both must work."""
    more = ("cat", "cp", "tr", "uname", "mktemp", "mkdir", "sort", "head", "grep", "ln", "chmod")
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    environment = machine(python3=f'exec "{base}" "$@"', **{tool: f'exec {needs(tool)} "$@"' for tool in more})
    handed_on = ("PIP_", "SSL_", "UV_INDEX", "UV_DEFAULT_INDEX")
    environment |= {name: value for name, value in OUTER_ENVIRONMENT.items() if name.startswith(handed_on)}

    first = run([clone / "setup.sh"], cwd=tmp_path, environment=environment, timeout=900)
    assert first.returncode == 0, first.stdout + first.stderr
    assert len(ids(first.stdout)) == 3
    assert ids(first.stdout) == ids((ROOT / "README.md").read_text(encoding="utf-8"))
    own = {}
    for name in ("sources.toml", "category-overrides.toml", ".env"):
        own[name] = (clone / name).read_text(encoding="utf-8") + "# mine\n"
        (clone / name).write_text(own[name], encoding="utf-8")

    second = run([clone / "setup.sh"], cwd=tmp_path, environment=environment, timeout=900)
    assert second.returncode == 0, second.stdout + second.stderr
    assert {name: (clone / name).read_text(encoding="utf-8") for name in own} == own
    assert shutil.which("cargo", path=environment["PATH"]) is None
    assert shutil.which("node", path=environment["PATH"]) is None
