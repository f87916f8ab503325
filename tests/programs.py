"""The real programs that Retrieval works with: found where `.ci/run` installs them, else on PATH, else skipped by name."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.support import OUTER_ENVIRONMENT, ROOT, lacking

DESCRIBED = ROOT / ".ci" / "programs"
# Command -> the file in .ci/programs that installs it.
INSTALLED_BY = {
    "iwe": "iwe",
    "iwec": "iwe",
    "omp": "omp",
    "bun": "omp",
    "hermes": "hermes",
    "claude": "claude",
    "codex": "codex",
    "mcp-inspector": "inspector",
}


def find(command: str) -> Path | None:
    """The executable, of the first of these that has it: the variable RETRIEVAL_<COMMAND>_COMMAND, the installed programs of
    fixed versions, PATH. None where there is none.
    """
    named = OUTER_ENVIRONMENT.get(f"RETRIEVAL_{command.upper()}_COMMAND")
    if named:
        path = shutil.which(named, path=OUTER_ENVIRONMENT.get("PATH"))
        return None if path is None else Path(path).absolute()
    cached = _cached(command)
    if cached is not None:
        return cached
    path = shutil.which(command, path=OUTER_ENVIRONMENT.get("PATH"))
    return None if path is None else Path(path).absolute()


def environment_for(program: Path, **variables: str) -> dict[str, str]:
    """The environment of the current test with the program's folder first on PATH, since OMP finds its Bun there."""
    path = os.pathsep.join((str(program.parent), os.environ.get("PATH", "")))
    return {**os.environ, "PATH": path, **variables}


def versions() -> list[str]:
    """Each program with its version as far as it is known without starting it, for the report of a run."""
    found = {command: find(command) for command in INSTALLED_BY}
    return [f"no {name}" if path is None else f"{name} {_version(name, path)}" for name, path in found.items()]


def _version(command: str, path: Path) -> str:
    """The version in the installed folder's name (Bun stands in OMP's), else where the program is."""
    name = INSTALLED_BY[command]
    folder = path.parent.parent.name
    return folder.removeprefix(f"{name}-") if folder.startswith(f"{name}-") else str(path)


def _cached(command: str) -> Path | None:
    name = INSTALLED_BY[command]
    text = (DESCRIBED / f"{name}.sh").read_text(encoding="utf-8")
    stated = re.search(r"^version=(\S+)$", text, re.MULTILINE)
    if stated is None:
        raise AssertionError(f".ci/programs/{name}.sh states no version")
    cache = OUTER_ENVIRONMENT.get("XDG_CACHE_HOME") or os.path.join(OUTER_ENVIRONMENT.get("HOME", ""), ".cache")
    home = Path(cache, "retrieval-ci", f"{name}-{stated[1]}")
    found = home / "bin" / command
    return found if (home / ".installed").is_file() and os.access(found, os.X_OK) else None


def needed(command: str) -> Path:
    """The executable, or the end of the test: a skip that names it, and a failure where CI=true."""
    found = find(command)
    if found is None:
        lacking(
            f"`{command}`",
            f"install it as .ci/programs/{INSTALLED_BY[command]}.sh does, or name it in RETRIEVAL_{command.upper()}_COMMAND",
        )
    return found


@pytest.fixture(scope="session")
def iwec() -> Path:
    """The server of IWE."""
    return needed("iwec")


@pytest.fixture(scope="session")
def omp() -> Path:
    """OMP. Run it with `environment_for(omp)`: it needs the Bun beside it."""
    return needed("omp")


@pytest.fixture(scope="session")
def bun() -> Path:
    """Bun, which OMP runs on."""
    return needed("bun")


@pytest.fixture(scope="session")
def hermes() -> Path:
    """Hermes Agent, in its environment's own `bin`: the interpreter that can import it is `hermes.with_name("python")`."""
    return needed("hermes").resolve()


@pytest.fixture(scope="session")
def claude() -> Path:
    """Claude Code."""
    return needed("claude")


@pytest.fixture(scope="session")
def codex() -> Path:
    """Codex."""
    return needed("codex")
