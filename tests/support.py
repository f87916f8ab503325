"""What tests in every folder need: where the checkout is, what a machine lacks, how a process is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
IN_CI = os.environ.get("CI") == "true"

# The environment as the run was started with; each test sees one without the person's own homes and settings.
OUTER_ENVIRONMENT = dict(os.environ)


def lacking(what: str, remedy: str) -> NoReturn:
    """End the test because the machine lacks `what`: a skip that names it, and a failure where CI=true."""
    sentence = f"this machine lacks {what}: {remedy}"
    if IN_CI:
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


def needs(command: str, remedy: str = "install it to run this test") -> str:
    """The path of a program that is not part of the environment, or the end of the test."""
    found = shutil.which(command)
    if found is None:
        lacking(f"`{command}`", remedy)
    return found


def run(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    timeout: float = 600,
) -> subprocess.CompletedProcess[str]:
    """Run a process to its end and give code and texts back; nothing is read from standard input."""
    return subprocess.run(
        [os.fspath(argument) for argument in arguments],
        cwd=cwd,
        env=None if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
    )


def own_files() -> list[Path]:
    """Every file of the checkout that Git has or would take, relative to it, sorted. Needs Git."""
    listed = run([needs("git"), "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    if listed.returncode:
        lacking("a Git checkout around these tests", "clone the repository")
    names = {name for name in listed.stdout.split("\0") if name}
    return sorted(path for path in map(Path, names) if (ROOT / path).is_file())
