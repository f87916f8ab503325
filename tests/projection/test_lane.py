"""Many processes at one lane, readers that never meet a gap, and processes that are killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from serve.projection import locks, upkeep
from serve.projection.copying import holds
from serve.projection.layout import MARKER, read_marker
from serve.projection.manifest import Manifest
from tests.projection.conftest import skill_text
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from serve.contract import Record
    from tests.projection.conftest import World

# Projects the records that stand in a file, in an order of its own, each as often as told, and prints what came of it.
PROJECTING = """
import json, random, sys, time
import msgspec
from pathlib import Path
from serve.contract import Record
from serve.projection.projector import Projector
from serve.settings import Bounds
data, records, harness, seed, rounds = sys.argv[1:]
records = msgspec.json.decode(Path(records).read_bytes(), type=list[Record])
projector = Projector(Path(data), harness, Bounds())
sys.stdin.readline()
for _ in range(int(rounds)):
    random.Random(int(seed)).shuffle(records)
    for record in records:
        done = projector.project(record)
        print(json.dumps([record.id, done.name, str(done.path), done.state]), flush=True)
"""
# Kills itself at the chosen point of a projection.
KILLED = """
import os, signal, sys
from serve.projection import copying, locks, projector, staging, swap
point, script = sys.argv[1], sys.argv[2]
def die(*_arguments, **_named):
    os.kill(os.getpid(), signal.SIGKILL)
def after(function):
    def call(*arguments, **named):
        function(*arguments, **named)
        die()
    return call
if point == "copying":
    write = copying._write_all
    copying._write_all = lambda target, block: die() if b"#!/bin" in bytes(block) else write(target, block)
elif point == "staged":
    projector.stage_package = after(projector.stage_package)
elif point == "marked":
    projector.put_in_place = die
elif point == "placed":
    projector.put_in_place = after(projector.put_in_place)
elif point == "listed":
    projector.Manifest.put = after(projector.Manifest.put)
sys.argv = sys.argv[2:]
exec(script)
"""


def start(world: World, records: Sequence[Record], harness: str, *, seed: int = 0, rounds: int = 1, killed: str = ""):
    """A process that projects once it is told to by closing its standard input."""
    listed = world.data.parent / f"records-{harness}.json"
    if not listed.exists():
        listed.write_bytes(msgspec.json.encode(list(records)))
    arguments = [str(world.data), str(listed), harness, str(seed), str(rounds)]
    script = ["-c", KILLED, killed, PROJECTING] if killed else ["-c", PROJECTING]
    return subprocess.Popen(
        [sys.executable, *script, *arguments],
        cwd=world.data.parent / "here",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def assert_lane_is_whole(world: World, harness: str, ids: set[str]) -> None:
    """Every folder of a lane is one complete copy, and the manifest lists exactly these."""
    markers = {name: read_marker(world.lane(harness) / name) for name in world.listed(harness)}
    assert None not in markers.values(), markers
    assert sorted(marker.id for marker in markers.values() if marker) == sorted(ids)
    for name, marker in markers.items():
        assert marker is not None
        assert holds(world.lane(harness) / name, marker.files), name
    with Manifest(world.layout.manifest) as manifest:
        rows = manifest.rows(harness)
    assert {(row.folder, row.id, row.name) for row in rows} == {
        (name, marker.id, marker.name) for name, marker in markers.items() if marker
    }
    assert len({row.name for row in rows}) == len(rows)


@pytest.mark.long
def test_64_processes_that_project_overlapping_skills_lose_nothing(world: World) -> None:
    records = [
        world.skill(name, folder=f"{source}/{name}", source=source)
        for name in ("pdf", "docx", "xlsx", "notes")
        for source in ("one", "two", "three")
    ]
    for record in records:
        world.add(record, "scripts/run.sh", f"#!/bin/sh\n# {record.id}\n", 0o755)
    processes = [start(world, records, "omp", seed=number) for number in range(64)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    outputs = [process.communicate(timeout=300) for process in processes]

    assert [(process.returncode, errors[1]) for process, errors in zip(processes, outputs, strict=True)] == [
        (0, "")
    ] * 64
    said = {tuple(json.loads(line)[:3]) for out, _errors in outputs for line in out.splitlines()}
    states = [json.loads(line)[3] for out, _errors in outputs for line in out.splitlines()]
    assert len(said) == len(records)
    assert states.count("copied") == len(records)
    assert set(states) == {"copied", "current"}
    assert_lane_is_whole(world, "omp", {record.id for record in records})
    assert os.listdir(world.layout.staging) == []


def test_eight_processes_that_project_skills_of_one_name_give_each_its_own(world: World) -> None:
    records = [world.skill("pdf", folder=f"{source}/pdf", source=source) for source in ("one", "two", "three", "four")]
    processes = [start(world, records, "hermes", seed=number) for number in range(8)]
    outputs = [process.communicate("\n", timeout=120) for process in processes]

    assert [(process.returncode, errors[1]) for process, errors in zip(processes, outputs, strict=True)] == [
        (0, "")
    ] * 8
    assert_lane_is_whole(world, "hermes", {record.id for record in records})
    names = {json.loads(line)[1] for out, _errors in outputs for line in out.splitlines()}
    assert "pdf" in names
    assert names <= {"pdf", "pdf-one", "pdf-two", "pdf-three", "pdf-four"}
    assert len(names) == 4


READER = """
import os, sys
from pathlib import Path
folder = Path(sys.argv[1])
seen, looks = set(), 0
print("ready", flush=True)
while not os.path.exists(sys.argv[2]):
    head = (folder / "SKILL.md").read_text(encoding="utf-8")
    seen.add(head)
    os.listdir(folder)
    looks += 1
print(len(seen), looks, flush=True)
"""


@pytest.mark.requirement("R124")
def test_a_reader_never_meets_a_gap_while_a_copy_is_refreshed(world: World, tmp_path: Path) -> None:
    record = world.skill("pdf", skill_text("pdf", body="version 0\n" * 3000))
    done = world.project(record)
    stop = tmp_path / "stop"
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(done.path), str(stop)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        for number in range(1, 41):
            text = skill_text("pdf", body=f"version {number}\n" * 3000)
            Path(record.path).write_text(text, encoding="utf-8")
            assert world.project(record).state == "refreshed"
        stop.touch()
        out, errors = reader.communicate(timeout=60)

    assert errors == ""
    versions, looks = map(int, out.split())
    assert versions > 1
    assert looks > versions


@pytest.mark.requirement("R034")
@pytest.mark.parametrize("point", ["copying", "staged", "marked", "placed", "listed"])
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")
def test_a_process_killed_in_the_middle_leaves_no_half_copy_and_the_next_run_cleans_up(
    world: World, point: str, older: bool
) -> None:
    record = world.skill("pdf")
    script = world.add(record, "scripts/run.sh", "#!/bin/sh\n", 0o755)
    if older:
        world.project(record)
        script.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    process = start(world, [record], "omp", killed=point)
    _out, errors = process.communicate("\n", timeout=60)
    assert process.returncode == -signal.SIGKILL, errors

    left = world.listed() if world.lane().exists() else []
    whole = [read_marker(world.lane() / name) for name in left]
    assert len(left) == (1 if older or point in {"placed", "listed"} else 0)
    assert all(marker is not None and holds(world.lane() / "pdf", marker.files) for marker in whole)
    stages = upkeep.stale_stages(world.layout)
    done = world.project(record)

    assert len(stages) == 1
    assert done.path.name == "pdf"
    assert (done.path / "scripts" / "run.sh").read_bytes() == script.read_bytes()
    assert_lane_is_whole(world, "omp", {record.id})
    assert upkeep.stale_stages(world.layout) == []
    assert os.listdir(world.layout.staging) == []


def test_a_staging_folder_in_use_is_neither_stale_nor_swept(world: World) -> None:
    with locks.stage(world.layout.staging) as mine:
        (mine / "file").write_text("x", encoding="utf-8")
        assert locks.stale(world.layout.staging) == []
        assert locks.sweep(world.layout.staging) == []
        world.project(world.skill("pdf"))
        assert (mine / "file").exists()

    assert os.listdir(world.layout.staging) == []


def test_what_a_staging_folder_holds_can_be_removed_whatever_its_rights(world: World) -> None:
    with locks.stage(world.layout.staging) as mine:
        (mine / "a" / "b").mkdir(parents=True)
        (mine / "a" / "b" / "file").write_text("x", encoding="utf-8")
        (mine / "a" / "b").chmod(0o500)
        (mine / "a").chmod(0o500)

    assert os.listdir(world.layout.staging) == []


def test_a_lane_that_stays_locked_is_an_error_and_not_a_wait_for_ever(world: World) -> None:
    path = world.layout.lock("omp")
    held = pytest.raises(locks.ProjectionError, match=r"has held the projection lane")
    with locks.locked(path), held as raised, locks.locked(path, timeout=0.05):
        pass

    assert int(raised.value.code) == 5
    with locks.locked(path, timeout=0):
        pass


@pytest.mark.requirement("R119")
def test_a_thousand_copies_do_not_slow_down_the_next_one(world: World) -> None:
    first = world.skill("s0")
    world.project(first)
    with Manifest(world.layout.manifest) as manifest:
        row = manifest.of_id("omp", first.id)
        assert row is not None
        for number in range(1, 1001):
            manifest.put(row._replace(id=f"lib:s{number}", folder=f"s{number}", name=f"s{number}"))

    with Manifest(world.layout.manifest) as manifest:
        asked: list[str] = []
        manifest._connection.set_trace_callback(asked.append)
        taken = manifest.taken("omp", "S500", "lib:x")
        plans = [manifest._connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}").fetchall()]

    assert taken
    assert all("SCAN" not in str(step) for plan in plans for step in plan)
    assert (world.lane() / "s0" / MARKER).is_file()
