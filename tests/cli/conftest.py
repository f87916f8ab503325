"""Worlds to run commands in: one that is built once and only read, and others that each test may spoil."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipeline.cli import run
from tests.world import World

PERSONAL = ("HERMES_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")

Command = Callable[..., "Ended"]


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command of the program in this process, in a world: command(world, "build", "--json")."""

    def of(world: World | Path, *arguments: str, stdin: bytes = b"", **variables: str) -> Ended:
        place = world if isinstance(world, Path) else world.root
        settings = variables if isinstance(world, Path) else world.environment(**variables)
        with monkeypatch.context() as context:
            context.chdir(place)
            for name, value in settings.items():
                context.setenv(name, value)
            context.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            capsys.readouterr()
            code = run(arguments)
            out, err = capsys.readouterr()
        return Ended(code, out, err)

    return of


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A built world of all kinds, only to be read: `main` (a library), `side` (its copies) and `own` (native of omp).

    main: four skills, one without a category, one that cannot be read. side: a copy and a skill of its own. own: one that
    bears the name of a skill in main.
    """
    world = World(tmp_path_factory.mktemp("library"), "main", "side", "own")
    world.library()
    world.skill("nothing", "Does the thing.", "See below.")
    (world.lib("main") / "broken").mkdir()
    (world.lib("main") / "broken" / "SKILL.md").symlink_to("not-there.md")
    copy = (world.lib("main") / "sql-tuning" / "SKILL.md").read_bytes()
    (world.lib("side") / "copy").mkdir()
    (world.lib("side") / "copy" / "SKILL.md").write_bytes(copy)
    world.skill("index-advice", "Advise on database indexes. Use when a table grows.", source="side")
    world.skill("release-notes", source="own")
    world.extra["own"] = 'harness = "omp"'
    world.configure()
    text = world.config.read_text(encoding="utf-8")
    own = text.index('name = "own"')
    world.config.write_text(text[:own] + text[own:].replace('state = "cold"', 'state = "native"', 1), encoding="utf-8")
    with pytest.MonkeyPatch.context() as context:
        for name in [name for name in os.environ if name in PERSONAL or name.startswith("RETRIEVAL_")]:
            context.delenv(name)
        done = world.run("build", HOME=str(world.root))
        done = world.run("build", HOME=str(world.root))  # the second scan reads once more what is as young as the first
    assert done.returncode == 3, done.stdout + done.stderr
    return world


@pytest.fixture
def world(tmp_path: Path, library: World) -> World:
    """A world of one source with four skills, built, to be changed. The model's prepared copy is shared: it takes longest."""
    made = World(tmp_path)
    made.library()
    shutil.copytree(library.data / "models", made.data / "models", copy_function=os.link)
    made.build()
    return made
