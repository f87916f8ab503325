"""A built index, and how each harness is told of the MCP server that answers from it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.world import World

COMMAND = sys.executable
TOOLS = {"retrieve_skill", "retrieve_reference"}


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world with an index. Tests only list what is there; one that retrieves has `world`."""
    made = World(tmp_path_factory.mktemp("harnesses") / "world")
    made.library()
    made.build()
    return made


@pytest.fixture
def world(index: World, tmp_path: Path) -> World:
    """The index with lanes of its own."""
    made = World(tmp_path / "own")
    shutil.copytree(index.data, made.data)
    return made


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder and a current folder that is nobody's project."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(work)
    return home


def arguments(harness: str) -> list[str]:
    """What starts the server, beside the command."""
    return ["-m", "serve", "--harness", harness, "--selector", "rank"]


def variables(world: World) -> dict[str, str]:
    """The environment that a registration passes on."""
    return {"RETRIEVAL_HOME": str(world.data), "PYTHONPATH": str(ROOT)}
