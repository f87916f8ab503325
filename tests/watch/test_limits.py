"""Where the system allows too few watches: folders are polled instead, and the watcher says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT, lacking
from tests.watch.follower import PROGRAM, Follower, records
from tests.world import World

pytestmark = pytest.mark.long

# A user namespace has limits of its own.
NAMESPACE = ("unshare", "--user", "--map-root-user", "sh", "-c")
LIMITED = 'echo {limit} >/proc/sys/user/{name} && exec "$@"'


class Limited(Follower):
    """A watcher in a namespace in which a limit of inotify is low."""

    def __init__(self, world: World, name: str, limit: int) -> None:
        self.world = world
        self.log = world.root / "limited.log"
        script = LIMITED.format(name=name, limit=limit)
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*NAMESPACE, script, "sh", sys.executable, "-c", PROGRAM, "watch", "--interval", "0.2"],
                cwd=world.root,
                env={**os.environ, "PYTHONPATH": str(ROOT), **world.environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


@pytest.fixture
def world(tmp_path: Path) -> World:
    if not sys.platform.startswith("linux"):
        pytest.skip("this system has no inotify")
    probe = LIMITED.format(name="max_inotify_watches", limit=5)
    if shutil.which("unshare") is None or subprocess.run([*NAMESPACE, probe, "sh", "true"], check=False).returncode:
        lacking("user namespaces with limits of their own", "allow unprivileged user namespaces to run this test")
    made = World(tmp_path)
    made.library()
    return made


@pytest.mark.parametrize(
    ("name", "limit"),
    [("max_inotify_watches", 3), pytest.param("max_inotify_instances", 0, marks=pytest.mark.long)],
)
def test_too_few_watches_lead_to_polling_which_is_said(world: World, name: str, limit: int) -> None:
    follower = Limited(world, name, limit)
    try:
        state = follower.settle()
        assert state["backend"].startswith("polling every 0.2 s")
        assert "looked at again and again" in state["notes"][0]

        with follower.noticing() as edited:
            world.skill("sql-tuning", body="# SQL\n\nA database query, seen by polling. " * 9)
        assert edited["upsert"] == (1, 1, 0)
        assert follower.end() == 0
    finally:
        follower.process.kill()
        follower.process.wait(60)


@pytest.mark.long
def test_a_limit_that_is_met_later_leads_to_polling_too(world: World) -> None:
    follower = Limited(world, "max_inotify_watches", 40)
    try:
        assert follower.settle()["backend"] == "events"
        with follower.noticing():
            for number in range(60):
                world.skill(f"folder-{number}/inner")
        with follower.noticing():
            world.skill("folder-59/inner", body="# SQL\n\nA database query in the last folder. " * 9)
        assert follower.state["backend"].startswith("polling")
        assert records(world).count(b'"main:folder-') == 60
    finally:
        follower.process.kill()
        follower.process.wait(60)
