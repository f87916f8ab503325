"""Fixtures of all tests: a home of its own for each, the shared material, and a header that says what is being tested."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

# Before any of them is imported: their assertions explain themselves as those of tests do.
pytest.register_assert_rewrite(
    "tests.build.compare",
    "tests.process.crash",
    "tests.references.support",
    "tests.server.client",
    "tests.server.web",
    "tests.world",
)

from tests import programs  # noqa: E402
from tests.programs import bun, claude, codex, hermes, iwec, omp  # noqa: E402, F401 - fixtures of every test
from tests.support import IN_CI, ROOT, lacking  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

# Variables by which a person's own set-up would leak into a test.
PERSONAL = ("HERMES_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
REPORTED = ("doit", "chromadb", "onnxruntime", "fastembed", "typer", "mcp")


def pytest_report_header() -> list[str]:
    versions = [f"python {platform.python_version()}", f"sqlite {sqlite3.sqlite_version}"]
    for name in REPORTED:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    return ["tested with: " + ", ".join(versions), "programs: " + ", ".join(programs.versions())]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where CI=true, a skipped test is a failed run, however it was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if IN_CI and reporter is not None and reporter.stats.get("skipped"):
        reporter.write_line("\nCI=true: a test was skipped, so this run has failed", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _home_of_its_own(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the configuration or the data of the person who runs it."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    for name in list(os.environ):
        if name in PERSONAL or name.startswith("RETRIEVAL_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared test material beside the checkout."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        lacking("the shared test material", f"it belongs at ../shared beside {ROOT.name}")
    return folder
