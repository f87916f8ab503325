"""Programs and worlds for the lane of IWE, and waiting for what happens in other processes."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from serve.lanes.iwe import IweLane
from serve.lanes.iwec_protocol import Patience
from serve.ranking import Lane
from serve.snapshot import Live, Snapshot
from tests.world import World

PATIENT = Patience(first_pause=0.02, longest_pause=0.05)
PROGRAM = Path(__file__).with_name("odd_iwec.py")


def until(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """The first value of a condition that holds, or a failure after `seconds`."""
    pause = threading.Event()
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it never came to be"
        pause.wait(0.005)
    return value


def gone(pid: int) -> bool:
    """Whether a process has ended, even if nobody has asked for its exit code yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in {"Z", "X"}


def current(world: World) -> Snapshot:
    return Live(world.data).current()


def answered(lane: IweLane, query: str, snapshot: Snapshot, limit: int = 10, **more: Any) -> Lane:
    """The lane's answer as soon as it takes part."""
    found = []

    def ask() -> bool:
        found.append(lane.hits(query, limit, snapshot, **more))
        return found[-1].hits is not None

    until(ask)
    return found[-1]


def ids(lane: Lane, snapshot: Snapshot) -> list[str]:
    assert lane.hits is not None, lane.reason
    return [snapshot.ids[row] for row in lane.hits.rows.tolist()]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A built world of two sources, only to be read."""
    world = World(tmp_path_factory.mktemp("iwe-built"), "main", "side")
    world.library()
    world.skill("sql-joins", "Write SQL joins. Use when tables of a database are joined.", source="side")
    world.skill("sql-tuning-notes", "Notes on tuning slow SQL queries of a database.", source="side")
    world.build()
    return world


@pytest.fixture
def lanes() -> Iterator[Callable[..., IweLane]]:
    """Makes lanes that are started, and closed after the test."""
    made: list[IweLane] = []

    def make(catalog: Path, command: object, *, budget: float = 20.0, patience: Patience = PATIENT) -> IweLane:
        made.append(IweLane(catalog, str(command), budget, patience))
        made[-1].start()
        return made[-1]

    yield make
    for lane in made:
        lane.close()


class Odd:
    """A program in `iwec`'s place that behaves in each life as it is told, and writes down what it was sent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = folder / "odd iwec"
        text = PROGRAM.read_text(encoding="utf-8")
        self.command.write_text(f"#!{sys.executable} -IS\n{text}", encoding="utf-8")
        self.command.chmod(0o755)

    def plan(self, *lives: str, keys: tuple[str, ...] = (), counts: tuple[int, ...] = ()) -> Path:
        """What it does in its first life, its second and so on; in all later ones as in the last."""
        told = {"lives": lives, "keys": keys, "counts": counts}
        (self.folder / "plan.json").write_text(json.dumps(told), encoding="utf-8")
        return self.command

    @property
    def environments(self) -> list[dict[str, str]]:
        """What it was started with, life by life."""
        files = sorted(self.folder.glob("life-*"), key=lambda path: int(path.name.partition("-")[2]))
        return [json.loads(path.read_text(encoding="utf-8")) for path in files]

    @property
    def received(self) -> list[dict[str, Any]]:
        """All messages that it was sent."""
        lines = (self.folder / "received").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def odd(tmp_path: Path) -> Odd:
    folder = tmp_path / "odd"
    folder.mkdir()
    return Odd(folder)
