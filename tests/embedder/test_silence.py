"""Embedding tells nobody: no file in the home folder, and no connection."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT, lacking

EMBED = """
import sys
from pathlib import Path
from serve.embedder import EmbedderConfig, open_embedder
print(len(open_embedder(EmbedderConfig(cache_dir=Path(sys.argv[1]))).query("hello")))
"""


def embed(tmp_path: Path, *before: str) -> Path:
    """Embed a text in a process with an empty home folder; returns that folder."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    command = [*before, sys.executable, "-c", EMBED, str(tmp_path / "models")]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=120)
    assert done.stdout.strip() == "384", done.stderr
    return home


def test_the_model_leaves_nothing_in_the_home_folder(tmp_path: Path) -> None:
    assert list(embed(tmp_path).iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="system calls are traced on Linux")
def test_the_model_opens_no_connection(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        lacking("strace", "it shows the connections of a process")
    log = tmp_path / "calls"
    embed(tmp_path, strace, "-f", "-qq", "-e", "trace=socket", "-o", str(log))
    assert [line for line in log.read_text(encoding="utf-8").splitlines() if "AF_INET" in line] == []
