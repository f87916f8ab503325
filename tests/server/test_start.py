"""`start.sh` is what a harness is told to start: from any folder, by its absolute path, and nothing else is written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.client import SECONDS, RawClient
from tests.support import ROOT
from tests.world import COMMAND, World

# Stands for the interpreter of `.venv`, which has this checkout installed: isolated as it is told to be.
INTERPRETER = """\
#!{python} -I
import runpy, sys
if sys.argv[1:4] != ["-I", "-m", "serve"]:
    sys.exit(9)
sys.argv[1:4] = []
sys.path.insert(0, {root!r})
runpy.run_module("serve", run_name="__main__", alter_sys=True)
"""
TELLER = """\
#!/bin/sh
printf '%s\\n' "$@" "config=${RETRIEVAL_CONFIG-none}" "folder=$(pwd)"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in a folder with a blank in its name."""
    made = tmp_path / "a check out"
    (made / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "start.sh", made / "start.sh")
    return made


def interpret(checkout: Path, script: str) -> None:
    python = checkout / ".venv" / "bin" / "python"
    python.write_text(script, encoding="utf-8")
    python.chmod(0o755)


def told(checkout: Path, *arguments: str, script: Path | None = None, cwd: Path | None = None) -> list[str]:
    interpret(checkout, TELLER)
    done = subprocess.run(
        [str(script or checkout / "start.sh"), *arguments],
        cwd=cwd or checkout.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.requirement("R107")
def test_a_script_starts_the_server_on_standard_input_and_output(checkout: Path, tmp_path: Path) -> None:
    interpret(checkout, INTERPRETER.format(python=sys.executable, root=str(ROOT)))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with RawClient([str(checkout / "start.sh"), "--harness", "omp"], cwd=elsewhere) as raw:
        assert raw.initialize()["serverInfo"]["name"] == "retrieval"
        assert len(raw.ask("tools/list")["tools"]) == 2
        assert raw.end() == 0

    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in raw.lines)
    assert raw.errors == []


def test_arguments_are_handed_on_and_the_folder_stays(checkout: Path, tmp_path: Path) -> None:
    assert told(checkout, "--harness", "a b", "") == [
        "-I",
        "-m",
        "serve",
        "--harness",
        "a b",
        "",
        "config=none",
        f"folder={tmp_path}",
    ]


def test_it_may_be_called_through_links(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "one").symlink_to("../two")
    (tmp_path / "two").symlink_to(checkout / "start.sh")

    assert told(checkout, script=tmp_path / "bin" / "one", cwd=tmp_path / "bin")[:3] == ["-I", "-m", "serve"]


def test_the_configuration_of_the_checkout_is_used_unless_another_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout / "sources.toml").write_text("", encoding="utf-8")
    assert f"config={checkout / 'sources.toml'}" in told(checkout)

    monkeypatch.setenv("RETRIEVAL_CONFIG", "/other.toml")
    assert "config=/other.toml" in told(checkout)


def test_without_an_environment_the_next_step_is_named(checkout: Path) -> None:
    done = subprocess.run(
        [str(checkout / "start.sh")], capture_output=True, encoding="utf-8", check=False, timeout=SECONDS
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: there is no environment in {checkout}/.venv\n  next: run {checkout}/setup.sh\n"


def test_the_command_line_becomes_the_server_with_its_own_settings(tmp_path: Path) -> None:
    """Here the current folder is a person's own: its `.env` names the index."""
    world = World(tmp_path)
    world.library()
    world.build()
    (world.root / ".env").write_text("RETRIEVAL_HOME=data\nRETRIEVAL_SELECTOR=rank\n", encoding="utf-8")
    with RawClient([*COMMAND, "serve", "--harness", "omp"], cwd=world.root) as raw:
        raw.initialize()
        answer = raw.call(query="main:pod-audit")["structuredContent"]
        assert raw.end() == 0

    assert (answer["found"], answer["reload"]) == (True, "/reload-plugins")
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in raw.lines)


def test_the_command_line_refuses_what_the_server_would(tmp_path: Path) -> None:
    world = World(tmp_path)
    done = world.run("serve", "--harness", "vim")

    assert (done.returncode, done.stdout) == (2, "")
    assert 'RETRIEVAL_HARNESS is "vim"' in done.stderr
