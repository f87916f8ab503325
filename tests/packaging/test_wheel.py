"""The wheel works where there is no checkout: in an empty environment, from another folder."""

from __future__ import annotations

import json
import os
import sys
import tomllib
import venv
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support import OUTER_ENVIRONMENT, ROOT, run

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

pytestmark = pytest.mark.long

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by way of the source distribution, as an index would serve it."""
    target = tmp_path_factory.mktemp("dist")
    built = run([sys.executable, "-m", "build", "--outdir", target, ROOT], environment=OUTER_ENVIRONMENT)
    assert built.returncode == 0, built.stdout + built.stderr
    return next(target.glob("*.whl"))


class Installed:
    """An environment outside the checkout with the wheel in it, and a home that only it uses."""

    def __init__(self, folder: Path, requirement: str, pins: str) -> None:
        self.folder = folder
        self.bin = folder / "venv/bin"
        venv.create(folder / "venv", with_pip=True)
        # The pins as constraints: what the wheel declares must be enough, in the versions that are tested.
        constraints = folder / "constraints.txt"
        constraints.write_text(without_hashes(ROOT / f".ci/requirements/{pins}.txt"), encoding="utf-8")
        done = run(
            [self.bin / "python", "-m", "pip", "install", "--quiet", "--constraint", constraints, requirement],
            cwd=folder,
            environment={**OUTER_ENVIRONMENT, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"},
            timeout=900,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (folder / "home").mkdir()
        (folder / "elsewhere").mkdir()

    def run(self, program: str, *arguments: str) -> CompletedProcess[str]:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))},
            "HOME": str(self.folder / "home"),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }
        return run([self.bin / program, *arguments], cwd=self.folder / "elsewhere", environment=environment)


def without_hashes(pins: Path) -> str:
    lines = pins.read_text(encoding="utf-8").splitlines()
    return "".join(line.removesuffix(" \\") + "\n" for line in lines if not line.lstrip().startswith("--hash"))


@pytest.fixture(scope="module")
def whole(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("whole"), f"retrieval[build] @ {wheel.as_uri()}", "build")


@pytest.fixture(scope="module")
def light(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("light"), f"retrieval @ {wheel.as_uri()}", "serve")


def test_the_wheel_carries_what_a_first_run_reads(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        "pipeline/_bundled/dodo.py",
        "pipeline/_bundled/taxonomy.toml",
        "pipeline/_bundled/sources.example.toml",
        "serve/embedder/minilm/tokenizer.json",
    }

    assert expected - names == set()
    for file in sorted((ROOT / "examples/library").rglob("*")):
        if file.is_file():
            assert f"pipeline/_bundled/{file.relative_to(ROOT).as_posix()}" in names


def test_the_wheel_carries_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"pipeline", "serve"}


@pytest.mark.requirement("R121")
@pytest.mark.parametrize("program", ["retrieval", "hermes-retrieval"])
def test_both_names_tell_the_version(whole: Installed, program: str) -> None:
    shown = whole.run(program, "--version")

    assert shown.returncode == 0, shown.stderr
    assert VERSION in shown.stdout


def test_a_first_run_from_another_folder_ends_with_an_answer(whole: Installed) -> None:
    started = whole.run("retrieval", "init")
    assert started.returncode == 0, started.stdout + started.stderr
    built = whole.run("retrieval", "build", "--json")
    assert built.returncode in {0, 3}, built.stdout + built.stderr
    found = whole.run("retrieval", "search", "a test that fails now and then", "--limit", "3", "--json")
    assert found.returncode == 0, found.stdout + found.stderr

    answer = json.loads(found.stdout)
    assert all(lane["used"] for lane in answer["lanes"].values()), answer["lanes"]
    rows = answer["results"]
    assert len(rows) == 3
    assert "flaky-test-hunt" in [row["name"] for row in rows]
    assert all(row["path"].endswith("SKILL.md") for row in rows)
    checked = whole.run("retrieval", "verify")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_answering_side_installs_and_imports_alone(light: Installed) -> None:
    script = (
        "import serve.contract, serve.embedder, serve.snapshot, importlib.util as u; print(u.find_spec('chromadb'))"
    )
    shown = light.run("python", "-c", script)

    assert (shown.stdout, shown.returncode) == ("None\n", 0), shown.stderr


@pytest.mark.parametrize("arguments", [["--version"], ["search", "anything"]])
def test_without_the_building_side_the_command_line_says_what_it_needs(light: Installed, arguments: list[str]) -> None:
    shown = light.run("retrieval", *arguments)

    assert shown.returncode == 2
    assert "retrieval[build]" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_what_is_installed_fits_together(whole: Installed) -> None:
    checked = whole.run("python", "-m", "pip", "check")

    assert checked.returncode == 0, checked.stdout
