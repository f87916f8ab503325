"""One watcher for a data directory: who is elected, who stands by, and how one ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.engine.lock import WriterLock
from pipeline.errors import LockedError
from tests.support import ROOT
from tests.watch.follower import PROGRAM, Follower, following, records, until
from tests.world import World

pytestmark = pytest.mark.long


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.library()
    return made


@pytest.fixture
def follower(world: World) -> Iterator[Follower]:
    with following(world) as started:
        started.settle()
        yield started


def save(world: World, text: str) -> None:
    world.skill("sql-tuning", body=f"# SQL\n\nA database query, {text}. " * 9)


def test_a_second_watcher_is_refused_with_5_and_told_who_watches(follower: Follower) -> None:
    world = follower.world
    second = subprocess.run(
        [sys.executable, "-c", PROGRAM, "watch"],
        cwd=world.root,
        env={**os.environ, "PYTHONPATH": str(ROOT), **world.environment()},
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )

    assert second.returncode == 5
    assert f"process {follower.process.pid}\n" in second.stderr
    assert "next: " in second.stderr
    assert follower.leads()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system lacks SIGKILL")
def test_who_stands_by_takes_over_when_the_leader_is_killed(follower: Follower) -> None:
    world = follower.world
    with following(world, "--standby", name="second") as second:
        until(lambda: "standing by" in second.said, "the second one stands by")
        assert follower.leads()

        follower.end(signal.SIGKILL)
        save(world, "while nobody watched")
        second.settle()

        assert second.leads()
        assert b"while nobody watched" not in records(world)  # records hold no text
        before = world.generation
        with second.noticing() as edited:
            save(world, "while the second one watched")
        assert edited["upsert"] == (1, 1, 0)
        assert world.generation != before


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system lacks SIGKILL")
def test_a_killed_leader_is_shown_as_dead(follower: Follower) -> None:
    world = follower.world
    alive = world.json("status")
    assert alive["watching"]["pid"] == follower.process.pid
    assert alive["watching"]["alive"] is True
    assert f"process {follower.process.pid}, watching, events" in alive["watcher"]

    follower.end(signal.SIGKILL)
    dead = world.json("status", code=3)

    assert dead["watching"]["alive"] is False
    assert dead["watcher"].startswith(f"dead, it was process {follower.process.pid}")
    assert any("the watcher died" in warning["warning"] for warning in dead["warnings"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_watcher_that_is_told_to_stop_builds_what_it_saw_and_ends_with_0(follower: Follower, number: int) -> None:
    world, before = follower.world, follower.world.generation
    world.skill("saved-last/and-deep")

    assert follower.end(number) == 0, follower.said
    assert world.generation != before
    assert b"saved-last/and-deep" in records(world)
    assert follower.state["now"] == "stopped"
    status = world.json("status")
    assert status["watching"]["alive"] is False
    assert "was stopped" in status["watcher"]


def test_one_who_stands_by_can_be_stopped_too(follower: Follower) -> None:
    with following(follower.world, "--standby", name="second") as second:
        until(lambda: "standing by" in second.said, "the second one stands by")

        assert second.end() == 0
    assert follower.leads()


def test_another_run_that_writes_is_waited_for(follower: Follower) -> None:
    world, before = follower.world, follower.world.generation
    lock = WriterLock(world.data / "writer.lock")
    lock.acquire(30)
    try:
        save(world, "while a build runs")
        follower.wait(lambda state: state["now"] == "waiting", "it waits")
        assert world.generation == before
        assert follower.state["pending"] == ["main"]
    finally:
        lock.release()

    follower.wait(lambda state: state["settled"], "it has built")
    assert world.generation != before
    assert follower.state["problem"] is None


def test_a_watcher_that_waits_for_another_run_can_be_stopped(follower: Follower) -> None:
    lock = WriterLock(follower.world.data / "writer.lock")
    lock.acquire(30)
    try:
        save(follower.world, "while a build runs")
        follower.wait(lambda state: state["now"] == "waiting", "it waits")
        assert follower.end() == 0
    finally:
        lock.release()


def test_a_data_directory_that_is_deleted_under_the_watcher_is_built_again_and_still_its_own(
    follower: Follower,
) -> None:
    world = follower.world
    shutil.rmtree(world.data)
    save(world, "after all was deleted")

    follower.wait(lambda state: state["settled"] and world.generation, "all is built again")
    assert b"main:csv-cleaning" in records(world)
    second = WriterLock(world.data / "watcher.lock")
    with pytest.raises(LockedError):
        second.acquire(0.0)


def test_a_folder_of_somebody_else_is_not_taken_as_data_directory(world: World) -> None:
    world.data.mkdir()
    (world.data / "diary.txt").write_text("mine\n", encoding="utf-8")
    with following(world) as refused:
        assert refused.process.wait(60) == 1
        assert "did not put there" in refused.said
    assert [path.name for path in world.data.iterdir()] == ["diary.txt"]
