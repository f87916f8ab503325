"""A data directory that cannot be written: listing works all the same, clearing and repairing say which path it is."""

from __future__ import annotations

import json
import os
import sys
import tempfile

import pytest

from tests.support import ROOT, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX systems")

UNPRIVILEGED = """
import contextlib, io, json, os, sys
from pathlib import Path
import serve.harnesses.omp
from tests.projection.conftest import World
from serve.projection.recovery import open_manifest
from pipeline.cli import run
with contextlib.redirect_stdout(io.StringIO()):
    run(["projected", "list"])  # imports what it needs while everything can be read
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
world, how = World(Path(sys.argv[1])), sys.argv[2]
os.chdir(sys.argv[1])
for name in ("pdf", "docx"):
    world.project(world.skill(name))
root = world.layout.root
if how == "in use":
    held = open_manifest(world.layout)
    held.remove("omp", "docx")
elif how == "lost":
    for path in root.glob("manifest.sqlite3*"):
        path.unlink()
elif how == "damaged":
    world.layout.manifest.write_bytes(b"no database" * 500)
elif how == "log":
    held = open_manifest(world.layout)
    held.remove("omp", "docx")
    data = [(path, path.read_bytes()) for path in root.glob("manifest.sqlite3*")]
    held.__exit__(None, None, None)
    for path, content in data:
        path.write_bytes(content)
    world.layout.manifest.with_name("manifest.sqlite3-shm").unlink()
folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
files = [path for path in root.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
modes = [(path, path.stat().st_mode) for path in (*root.glob("manifest.*"), *folders)]
for path, mode in modes:
    path.chmod(mode & 0o555)
before = {str(path): path.read_bytes() for path in files}
ended = []
for arguments in (["list", "--json"], ["clear", "--all", "--dry-run", "--json"], ["clear", "--all"], ["repair"]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(["projected", *arguments])
    ended.append([code, out.getvalue(), err.getvalue()])
after = {str(path): path.read_bytes() for path in files}
for path, mode in reversed(modes):
    path.chmod(mode)
print(json.dumps([ended, before == after and not list(world.layout.staging.iterdir()), str(root)]))
"""


@pytest.mark.parametrize("how", ["plain", "in use", "lost", "damaged", "log"])
def test_a_data_directory_that_cannot_be_written_is_listed_and_named(how: str) -> None:
    # Not below tmp_path: the process gives up its rights and could not get there.
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        variables = {"HOME": place, "RETRIEVAL_HOME": f"{place}/data", "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        environment = {**os.environ, **variables, "PYTHONDONTWRITEBYTECODE": "1"}
        done = run([sys.executable, "-c", UNPRIVILEGED, place, how], environment=environment)

    assert done.returncode == 0, done.stderr
    (listed, planned, cleared, repaired), same, root = json.loads(done.stdout)
    known = ["lib:pdf"] if how in {"in use", "log"} else ["lib:docx", "lib:pdf"]
    assert listed[0] == (3 if len(known) == 1 else 0), listed
    assert [(item["id"], item["state"]) for item in json.loads(listed[1])["projections"]] == [
        (id_, "ok") for id_ in known
    ]
    assert planned[0] == 0, planned
    assert [item["id"] for item in json.loads(planned[1])["removed"]] == known
    for code, out, err in (cleared, repaired):
        assert (code, out) == (1, "")
        assert "cannot be written" in err
        assert f"at {root}" in err
        assert "RETRIEVAL_HOME" in err
    assert same
