"""A watcher of a world, as a process, and how to wait for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import ROOT
from tests.world import World

PROGRAM = "from pipeline.cli import main; main()"
PATIENCE = 90.0
Counts = dict[str, tuple[int, int, int]]


def until(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """The first value of a condition that counts as true; fails with `what` when there is none in a long time."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.01)
    return value


class Follower:
    """A watcher that runs. What it says goes to a file beside the world."""

    def __init__(self, world: World, *arguments: str, name: str = "watcher", **more: str) -> None:
        self.world = world
        self.log = world.root / f"{name}.log"
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, "watch", *arguments],
                cwd=world.root,
                env={**os.environ, "PYTHONPATH": str(ROOT), **world.environment(**more)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def state(self) -> dict[str, Any]:
        """What the elected watcher says of itself; {} while there is none."""
        try:
            found: dict[str, Any] = json.loads((self.world.data / "watcher.json").read_bytes())
        except FileNotFoundError:
            return {}
        return found

    @property
    def said(self) -> str:
        """Everything this one has said."""
        return self.log.read_text(encoding="utf-8")

    def leads(self) -> bool:
        """Whether this one is elected."""
        return bool(self.state.get("pid") == self.process.pid)

    def wait(self, condition: Callable[[dict[str, Any]], Any], what: str) -> Any:
        """Wait until this watcher leads and its state fulfils a condition."""

        def fulfilled() -> Any:
            assert self.process.poll() is None, self.said
            state = self.state
            return self.leads() and condition(state)

        try:
            return until(fulfilled, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{json.dumps(self.state, indent=1)}\n{self.said}") from error

    def settle(self, after: int = -1) -> dict[str, Any]:
        """Wait until more than `after` events were seen, and all was looked at once more since; the state then."""
        self.wait(lambda state: state["events"] > after and state["settled"], "the watcher has settled")
        return self.state

    @contextmanager
    def noticing(self) -> Iterator[Counts]:
        """Changes made in the block are noticed by the watcher; afterwards the value holds what was computed, written, removed."""
        before = self.settle()
        done: Counts = {}
        yield done
        after = self.settle(before["events"])
        for step, now in after["steps"].items():
            then = before["steps"].get(step, [0, 0, 0])
            if now != then and step not in {"select", "publish"}:
                done[step] = (now[0] - then[0], now[1] - then[1], now[2] - then[2])

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def following(world: World, *arguments: str, name: str = "watcher", **more: str) -> Iterator[Follower]:
    """A watcher for the length of a block; it is killed afterwards if it still runs."""
    follower = Follower(world, *arguments, name=name, **more)
    try:
        yield follower
    finally:
        if follower.process.poll() is None:
            follower.process.kill()
        follower.process.wait(PATIENCE)


def records(world: World) -> bytes:
    """The records that readers see now."""
    folder: Path = world.data / "snapshots" / world.generation
    return (folder / "records.jsonl").read_bytes()
