"""Builders and readers side by side: one writes at a time and is named, readers never wait and never see a mixture."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serve.snapshot import Live
from tests.build.compare import assert_sound
from tests.embedder.loopback import EmbeddingServer, good_answer
from tests.process.crash import endpoint
from tests.support import ROOT
from tests.world import COMMAND, SUBJECTS, World

pytestmark = pytest.mark.long


class Stuck:
    """A build that has the lock and waits for its embedding endpoint, which answers when it is told to."""

    def __init__(self, world: World, server: EmbeddingServer) -> None:
        self.world = world
        self.server = server
        self.more = {
            "RETRIEVAL_EMBEDDER": "endpoint",
            "RETRIEVAL_EMBEDDING_URL": server.url,
            "RETRIEVAL_EMBEDDING_MODEL": "loopback",
        }
        self._asked, self._go = threading.Event(), threading.Event()
        server.script.append(self._answer_later)
        self.process = self.start()
        assert self._asked.wait(60), self.process.communicate(timeout=10)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A build in a process of its own."""
        return subprocess.Popen(
            [*COMMAND, "build", "--json", *arguments],
            cwd=self.world.root,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.world.environment(**self.more)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def let_go(self) -> None:
        """Let the endpoint answer from now on."""
        self._go.set()

    def _answer_later(self, handler: Any) -> None:
        self._asked.set()
        self._go.wait(60)
        _, _, body = self.server.requests[-1]
        content = json.dumps(good_answer(body["input"])).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.library()
    return made


@pytest.fixture
def stuck(world: World) -> Iterator[Stuck]:
    """A build under way, in a process that is ended with the test."""
    with endpoint() as server:
        made = Stuck(world, server)
        try:
            yield made
        finally:
            made.let_go()
            made.process.kill()
            made.process.communicate(timeout=10)


def test_a_second_build_that_may_not_wait_ends_with_5_and_names_the_holder(world: World, stuck: Stuck) -> None:
    done = world.run("build", "--wait", "0", **stuck.more)

    assert done.returncode == 5
    assert f"process {stuck.process.pid} " in done.stderr
    assert "\n  at " in done.stderr
    assert "\n  next: " in done.stderr
    assert done.stdout == ""


def test_a_second_build_says_as_json_who_holds_the_lock(world: World, stuck: Stuck) -> None:
    told = world.json("build", "--wait", "0", code=5, **stuck.more)

    assert told["code"] == 5
    assert told["holder"]["pid"] == stuck.process.pid
    assert "build" in told["holder"]["command"]


def test_commands_that_only_look_do_not_wait_for_a_build(world: World, stuck: Stuck) -> None:
    status = world.run("status", **stuck.more)
    plan = world.run("build", "--dry-run", **stuck.more)

    assert "there is no index yet" in status.stdout
    assert plan.returncode == 0


def test_a_second_build_waits_and_then_finds_everything_done(world: World, stuck: Stuck) -> None:
    second = stuck.start("--wait", "60")
    _until(lambda: _has_open(second, world.data / "writer.lock"))
    assert second.poll() is None

    stuck.let_go()
    first_said, _ = stuck.process.communicate(timeout=60)
    second_said, complained = second.communicate(timeout=60)

    assert (stuck.process.returncode, second.returncode, complained) == (0, 0, "")
    assert json.loads(first_said)["published"] is True
    account = json.loads(second_said)
    assert account["published"] is False
    assert account["generation"] == json.loads(first_said)["generation"]
    assert not any(count["executed"] for count in account["steps"].values())


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system lacks SIGKILL")
def test_the_lock_of_a_killed_build_is_free_at_once(world: World, stuck: Stuck) -> None:
    stuck.process.kill()
    stuck.process.wait(timeout=10)
    stuck.let_go()

    assert world.json("build", "--wait", "0", **stuck.more)["published"] is True


def test_two_builds_started_at_once_both_end_well(world: World) -> None:
    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*COMMAND, "build"],
            cwd=world.root,
            env={**os.environ, "PYTHONPATH": str(ROOT), **world.environment()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    both = [start(), start()]
    complained = [process.communicate(timeout=120)[1] for process in both]

    assert ([process.returncode for process in both], complained) == ([0, 0], [b"", b""])
    assert_sound(world)


def _has_open(process: subprocess.Popen[str], path: Path) -> bool:
    """Whether a process has opened a file; where the system does not tell, yes."""
    folder = Path("/proc") / str(process.pid) / "fd"
    if not folder.is_dir():
        return not Path("/proc/self/fd").is_dir()
    try:
        return any(os.path.realpath(entry) == os.path.realpath(path) for entry in folder.iterdir())
    except FileNotFoundError:
        return False  # a file was closed while its entry was looked at


def _until(condition: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        pause.wait(0.01)


def edition(world: World, number: int) -> None:
    """Give every skill of the library the description of an edition."""
    for name in SUBJECTS:
        world.skill(name, f"Tune a database query, edition-{number}. Use when {name} comes up.")


def age(world: World, seconds: float) -> None:
    """Make all generations older than they are, keeping their order."""
    for folder in (world.data / "snapshots").iterdir():
        if folder.is_dir():
            stat = folder.stat()
            os.utime(folder, (stat.st_atime - seconds, stat.st_mtime - seconds))


def generations(world: World) -> set[str]:
    return {path.name for path in (world.data / "snapshots").iterdir() if path.is_dir()}


@pytest.mark.parametrize("editions", [5, pytest.param(30, marks=pytest.mark.long)])
def test_a_reader_sees_each_generation_whole_while_they_are_published_and_collected(
    world: World, editions: int
) -> None:
    edition(world, 0)
    published = {world.build().generation: 0}
    reader = subprocess.Popen(
        [sys.executable, "-m", "tests.process.reader", str(world.data), "3"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        for number in range(1, editions):
            edition(world, number)
            published[world.build().generation] = number
            assert len(generations(world)) <= 3  # the current one, the one before, and one that has just got too old
            age(world, 3600)
    finally:
        said, complained = reader.communicate(timeout=60)

    told = json.loads(said or "{}")
    assert (complained, told["errors"]) == ("", [])
    assert len(published) == editions
    assert {name: [published[name]] for name in told["editions"]} == told["editions"]
    assert len(told["editions"]) > 1  # the reader lived through changes


def test_old_generations_are_kept_for_a_while_and_then_collected(world: World) -> None:
    for number in range(4):
        edition(world, number)
        world.build()
    assert len(generations(world)) == 4  # none is old enough

    age(world, 3600)
    before = world.generation
    edition(world, 4)
    world.build()

    assert generations(world) == {world.generation, before}


def test_a_snapshot_stays_readable_when_its_generation_has_been_collected(world: World) -> None:
    edition(world, 0)
    world.build()
    snapshot = Live(world.data).current()
    shutil.rmtree(snapshot.folder)

    assert snapshot.ids == sorted(f"main:{name}" for name in SUBJECTS)
    assert snapshot.row_of("main:sql-tuning") == snapshot.ids.index("main:sql-tuning")
    assert "edition-0" in snapshot.record(0).description
    assert snapshot.descriptor(0).name == snapshot.record(0).name
    assert snapshot.vectors.shape == (4, 384)


def test_a_generation_that_is_published_again_is_never_away(world: World) -> None:
    world.build()
    folder = world.data / "snapshots" / world.generation
    before, files = folder.stat().st_ino, world.snapshot()
    (world.data / "build" / "doit.json").unlink()
    (folder / "vectors.npy").write_bytes(b"damaged")

    world.build()

    assert (
        folder.stat().st_ino == before
    )  # its place was not taken by another folder, so readers found one at all times
    assert world.snapshot() == files
