"""The writer lock: one holder, named, and gone with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.engine.lock import WriterLock
from pipeline.errors import LockedError
from serve.errors import ExitCode
from tests.support import ROOT

HOLD = """
import sys, pathlib
from pipeline.engine.lock import WriterLock
lock = WriterLock(pathlib.Path(sys.argv[1])); lock.acquire(0)
print("held", flush=True); sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path):
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        encoding="utf-8",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_process_is_told_who_holds_it(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(LockedError) as error:
        WriterLock(tmp_path / "lock").acquire(0)

    assert error.value.code == ExitCode.LOCKED
    assert str(holder.pid) in error.value.what


def test_a_killed_holder_holds_nothing(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    lock = WriterLock(tmp_path / "lock")

    lock.acquire(5)

    assert lock.holder()["pid"] == os.getpid()
    lock.release()
    assert lock.holder() == {}


def test_the_same_holder_may_ask_twice(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path / "lock")
    lock.acquire(0)
    lock.acquire(0)

    assert lock.held
    lock.release()
    assert not lock.held
