"""A library with a history, builds that are killed in it, and what must be true of a data directory ever after."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from serve.errors import NoIndexError
from serve.snapshot import Live
from tests.build.compare import assert_same_index, assert_sound, elsewhere, left_overs
from tests.embedder.loopback import EmbeddingServer
from tests.references.support import DocsWorld
from tests.support import ROOT
from tests.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Self

BATCH = 4
TOPICS = ("indexes", "joins", "backups", "migrations", "replicas", "views", "locks")

# The command line of a machine on which every file was changed long before it is looked at: what is known of a file by its
# stat alone is then believed, as it is in daily use, where tests otherwise always edit within the last two seconds.
SETTLED = """
from pipeline.sources import listing
from pipeline.tasks import scan
from pipeline.tasks.references import document
listing.RACY_NS = scan.RACY_NS = document.RACY_NS = 0
from pipeline.cli import main
main()
"""


class Crash:
    """A world with an embedding endpoint that remembers every text it was asked for, in which builds die."""

    def __init__(self, root: Path, server: EmbeddingServer | None) -> None:
        self.world = DocsWorld(root, "docs", skills=("main", "side"))
        self.server = server
        self.more = {"RETRIEVAL_EMBEDDING_BATCH": str(BATCH)}
        if server is not None:
            self.more |= {
                "RETRIEVAL_EMBEDDER": "endpoint",
                "RETRIEVAL_EMBEDDING_URL": server.url,
                "RETRIEVAL_EMBEDDING_MODEL": "loopback",
            }
        self.version = 0
        self.generations: set[str] = set()  # all that ever were to be published
        self.write(0)

    def write(self, version: int) -> None:
        """The library as it is in a version. Each has texts that were never there before, and skills that come, go and move."""
        world, self.version = self.world, version
        for number, topic in enumerate(TOPICS):
            if version == 0 or (version + number) % 3 == 0:
                world.skill(topic, f"Care for database {topic}, edition {version}. Use when {topic} trouble you.")
        for place in (version - 1, version):
            shutil.rmtree(world.lib("main") / f"brief-{place}", ignore_errors=True)
        for number in range(8):
            world.skill(f"brief-{version}/part-{number}", f"SQL advice {number} for release {version}.")
        (world.folder() / f"release-{version - 1}.md").unlink(missing_ok=True)
        for name in (f"release-{version}.md", "handbook.md"):
            told = [f"## Section {n}\n\nEdition {version} of {name} says {n} about databases.\n" for n in range(5)]
            world.document(name, "# Told\n\n" + "\n".join(told))
        moved, place = ("main", "side") if version % 2 else ("side", "main")
        shutil.rmtree(world.lib(moved) / "wanderer", ignore_errors=True)
        world.skill(
            "wanderer", "Query a database from another place.", source=place, files={"notes.md": f"{version}\n"}
        )

    def start(self, **more: str) -> subprocess.Popen[str]:
        """A build in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-c", SETTLED, "build", "--json"],
            cwd=self.world.root,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.world.environment(**self.more, **more)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def finish(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """The account of a build that must go well."""
        said, complained = process.communicate(timeout=120)
        assert (process.returncode, complained) == (0, ""), said
        account: dict[str, Any] = msgspec.json.decode(said)
        return account

    def build(self) -> None:
        """Build in this process."""
        self.world.build(**self.more)
        self.generations.add(self.world.generation)

    def clean(self) -> World:
        """What a build of the library as it is now makes in a new data directory; nothing of it reaches the other one."""
        twin = elsewhere(self.world)
        shutil.rmtree(twin.data, ignore_errors=True)
        twin.build(**self.more)
        self.generations.add(twin.generation)
        return twin

    def kept_vectors(self) -> int:
        """How many texts' vectors the memo has kept."""
        path = self.world.data / "memo.sqlite3"
        if not path.exists():
            return 0
        connection = sqlite3.connect(path)
        try:
            known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'embed'").fetchone()
            return int(connection.execute("SELECT count(*) FROM embed").fetchone()[0]) if known else 0
        finally:
            connection.close()

    def asked(self) -> list[str]:
        """All texts that the endpoint was asked for by this world's builds, the probes for its dimension aside."""
        assert self.server is not None
        return [text for text in self.server.texts() if text != "dimension"]

    def check_recovery(self, before: str, kill: Callable[[], int]) -> None:
        """Kill builds of the library as it is now, look at what is there, build again, and compare.

        before: the generation that was published, "" for none. kill: gives the number of builds that it killed.
        """
        clean = self.clean()
        self.generations |= {before} - {""}
        if self.server is not None:
            self.server.requests.clear()
        with Reader(self.world, {before, clean.generation}) as reader:
            kills = kill()
            assert self.world.generation in {before, clean.generation}
            if self.world.generation:
                assert_sound(self.world)
            kept = self.kept_vectors()
            account = self.finish(self.start())
        assert reader.errors == []
        assert (
            account["steps"]["embed"]["executed"] == self.kept_vectors() - kept
        )  # what was kept is not embedded again
        if self.server is not None:
            twice = sum((Counter(self.asked()) - Counter(set(self.asked()))).values())
            assert twice <= kills * BATCH
        self.check_whole(clean)

    def check_whole(self, clean: World) -> None:
        """Nothing tells that a build was ever killed here."""
        assert_sound(self.world)
        assert_same_index(self.world, clean, **self.more)
        assert left_overs(self.world) == []
        assert {path.name for path in (self.world.data / "snapshots").iterdir()} <= {*self.generations, "current.json"}


class Reader:
    """Reads what is published, over and over, while the block runs; `errors` holds whatever was not right."""

    def __init__(self, world: World, allowed: set[str]) -> None:
        self.live = Live(world.data)
        self.allowed = allowed
        self.errors: list[str] = []
        self.seen: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(60)
        self.look()

    def look(self) -> None:
        """Read the current generation whole, once."""
        try:
            snapshot = self.live.current()
            if snapshot.generation in self.seen:
                return
            rows = range(len(snapshot))
            matching = [snapshot.record(row).name == snapshot.descriptor(row).name for row in rows]
            if snapshot.generation not in self.allowed or not all(matching) or len(rows) != len(snapshot.vectors):
                self.errors.append(f"{snapshot.generation} is not one of {self.allowed}, or a mixture")
            self.seen.add(snapshot.generation)
        except NoIndexError as error:
            if "" not in self.allowed or self.seen:
                self.errors.append(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the reader met it
            self.errors.append(repr(error))

    def _read(self) -> None:
        while not self._stop.wait(0.002):
            self.look()


def kill_at(crash: Crash, point: str) -> int:
    """Run a build that dies at a named point; it is one."""
    process = crash.start(RETRIEVAL_KILL_AT=point)
    said, complained = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, f"{point} was never reached: {said}{complained}"
    return 1


@contextmanager
def endpoint() -> Iterator[EmbeddingServer]:
    """A loopback embedding server."""
    server = EmbeddingServer()
    try:
        yield server
    finally:
        server.close()
