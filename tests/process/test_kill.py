"""Any moment is a good moment to die: builds killed at every named point, and at random ones, leave nothing half-written."""

from __future__ import annotations

import ast
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.engine.lock import WriterLock
from pipeline.engine.memo import STEPS
from pipeline.sources import listing
from pipeline.tasks import scan
from pipeline.tasks.references import document
from tests.build.compare import left_overs
from tests.process.crash import BATCH, Crash, endpoint, kill_at
from tests.support import ROOT

MOMENTS = ("before", "inside", "after")
MANIFESTS = (
    *("scan", "problems", "categorize", "select", "descriptor", "card", "build", "terms", "embed"),
    *("document", "section"),
)
QUICK = [  # in the default suite; the others are marked long
    "manifest:scan:2",
    "memo:embed:inside:2",
    "generation:file:7",
    "generation:pointer",
    "file:written:12",
]
POINTS = [
    *QUICK,
    *(f"memo:{step}:{moment}" for step in STEPS for moment in MOMENTS),
    "memo:embed:before:3",
    "memo:embed:after:2",
    *(f"manifest:{name}" for name in MANIFESTS),
    "manifest:card:2",
    "manifest:build:2",
    "scan:before-cache",
    "scan:before-cache:2",
    "document:before-cache",
    "catalog:page",
    "catalog:page:3",
    "upsert-before-rows",
    "upsert-before-stamp",
    "generation:file",
    "generation:complete",
    "publish:before-pointer",
    *(f"file:written:{number}" for number in (1, 4, 7, 20, 28, 36, 44)),
]
FIRST = ["memo:scan:after", "memo:embed:after", "manifest:select", "generation:file:3", "generation:pointer"]
FIRST_QUICK = ["upsert-before-rows"]
ASIDE = "upsert-after-batch"  # reached by the process that writes to the store; the build finds what it wrote
RANDOM = 24

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system lacks SIGKILL"),
]


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds in this process believe stats like those in `crash.SETTLED`."""
    monkeypatch.setattr(listing, "RACY_NS", 0)
    monkeypatch.setattr(scan, "RACY_NS", 0)
    monkeypatch.setattr(document, "RACY_NS", 0)


@pytest.fixture
def crash(tmp_path: Path) -> Iterator[Crash]:
    """A world that was built once, and has changed since."""
    with endpoint() as server:
        made = Crash(tmp_path, server)
        made.build()
        made.write(1)
        yield made


def _long(points: list[str]) -> list[object]:
    return [point if point in QUICK + FIRST_QUICK else pytest.param(point, marks=pytest.mark.long) for point in points]


@pytest.mark.parametrize("point", _long(POINTS))
def test_a_build_killed_at_a_named_point_is_completed_by_the_next(crash: Crash, point: str) -> None:
    crash.check_recovery(crash.world.generation, lambda: kill_at(crash, point))


@pytest.mark.parametrize("point", _long([*FIRST, *FIRST_QUICK]))
def test_a_first_build_killed_at_a_named_point_publishes_nothing_and_is_completed_by_the_next(
    tmp_path: Path, point: str
) -> None:
    with endpoint() as server:
        crash = Crash(tmp_path, server)
        crash.check_recovery("", lambda: kill_at(crash, point))


@pytest.mark.parametrize("first", [False, True])
def test_the_death_of_the_process_that_writes_to_the_store_does_not_stop_the_build(tmp_path: Path, first: bool) -> None:
    with endpoint() as server:
        crash = Crash(tmp_path, server)
        if not first:
            crash.build()
            crash.write(1)
        clean = crash.clean()

        crash.finish(crash.start(RETRIEVAL_KILL_AT=ASIDE))

        crash.check_whole(clean)


def test_who_takes_the_lock_in_between_does_not_hide_what_a_killed_build_left(crash: Crash) -> None:
    clean = crash.clean()
    kill_at(crash, "generation:pointer")
    assert left_overs(crash.world)
    lock = WriterLock(crash.world.data / "writer.lock")
    lock.acquire(30)
    lock.release()

    crash.build()

    crash.check_whole(clean)


@pytest.mark.parametrize("point", ["memo:embed:before:2", pytest.param("memo:embed:inside:3", marks=pytest.mark.long)])
def test_the_builtin_model_embeds_nothing_again_that_was_kept(tmp_path: Path, point: str) -> None:
    crash = Crash(tmp_path, None)

    def kill() -> int:
        kills = kill_at(crash, point)
        assert crash.kept_vectors() > 0
        return kills

    crash.check_recovery("", kill)


def test_a_batch_that_was_computed_and_not_kept_is_all_that_is_embedded_again(crash: Crash) -> None:
    crash.check_recovery(crash.world.generation, lambda: kill_at(crash, "memo:embed:before:2"))

    asked = crash.asked()
    assert len(asked) - len(set(asked)) == BATCH


@pytest.mark.parametrize("kills", [2, pytest.param(RANDOM, marks=pytest.mark.long)])
def test_builds_killed_at_any_moment_of_a_long_history_are_completed_by_the_next(crash: Crash, kills: int) -> None:
    strike = Strike(crash, seed=kills)
    for version in range(2, 2 + 3 * kills):
        crash.write(version)
        crash.check_recovery(crash.world.generation, strike)
        if strike.hits >= kills:
            return
    pytest.fail(f"only {strike.hits} builds could be killed before they ended")


class Strike:
    """Kills builds some way into them. hits: how many had not ended by then."""

    def __init__(self, crash: Crash, seed: int) -> None:
        self.crash = crash
        self.chance = random.Random(seed)
        self.lasts = 1.0  # seconds that a build takes, as far as is known
        self.hits = 0

    def __call__(self) -> int:
        """One build, or two in a row, each of which continues what the one before left."""
        return sum(self._strike() for _ in range(self.chance.choice((1, 1, 2))))

    def _strike(self) -> bool:
        process = self.crash.start()
        begun = time.monotonic()
        try:
            process.wait(timeout=self.lasts * self.chance.uniform(0.15, 0.95))
        except subprocess.TimeoutExpired:
            process.kill()
        else:
            self.lasts = time.monotonic() - begun  # it was faster than thought
        said, complained = process.communicate(timeout=60)
        assert process.returncode in {0, -signal.SIGKILL}, said + complained
        hit = process.returncode == -signal.SIGKILL
        self.hits += hit
        return hit


def test_every_named_point_of_the_code_is_killed_at() -> None:
    killed_at = {re.sub(r":\d+$", "", point) for point in [*POINTS, *FIRST_QUICK, ASIDE]}
    families = {r"memo:{step}:before", r"memo:{step}:inside", r"memo:{step}:after", r"manifest:{path.parent.name}"}

    assert {name for name in _points() if not name.startswith(("memo:", "manifest:"))} == {
        name for name in killed_at if not name.startswith(("memo:", "manifest:"))
    }
    assert {name for name in _points() if name.startswith(("memo:", "manifest:"))} == families
    assert {f"memo:{step}:{moment}" for step in STEPS for moment in MOMENTS} <= killed_at


def test_every_folder_of_manifests_is_killed_at(crash: Crash) -> None:
    build = crash.world.data / "build"
    folders = {path.parent.name for path in build.rglob("*.jsonl")}

    assert folders == set(MANIFESTS)


def _points() -> set[str]:
    """The names in all calls of `faults.reach`, a computed one as it is written."""
    found = set()
    for path in (ROOT / "pipeline").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "faults.reach":
                (argument,) = node.args
                found.add(argument.value if isinstance(argument, ast.Constant) else ast.unparse(argument)[2:-1])
    return found
