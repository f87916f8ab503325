"""A whole retrieval, server and scout included, opens connections to nothing but what is configured."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harnesses.conftest import COMMAND
from tests.harnesses.test_whole_way import SKILL, TASK, scout
from tests.programs import environment_for
from tests.selection.model_server import ModelServer
from tests.server.client import RawClient
from tests.support import ROOT, lacking
from tests.world import COMMAND as WORLD_COMMAND
from tests.world import World

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="system calls are traced on Linux")


@pytest.fixture
def strace() -> str:
    """The program that lists system calls."""
    found = shutil.which("strace")
    if found is None:
        lacking("strace", "it shows the connections of a process")
    return found


def called(strace: str, log: Path, variables: dict[str, str]) -> tuple[dict[str, Any], set[str]]:
    """The answer of a traced server, and the addresses that it and all its children connected or sent to."""
    trace = [strace, "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(log)]
    with RawClient([*trace, COMMAND, "-m", "serve", "--harness", "omp"], variables) as client:
        client.initialize()
        result = client.call(query=TASK)
        assert client.end() == 0
    found = set()
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if "AF_INET" in line:
            port, address = re.search(r"htons\((\d+)\)", line), re.search(r'"([0-9a-f.:]+)"', line)
            found.add(f"{address[1] if address else '?'}:{port[1] if port else '?'}")
    return result, found


def test_with_the_ranking_alone_nothing_is_connected_to(strace: str, world: World, home: Path, tmp_path: Path) -> None:
    variables = {"RETRIEVAL_HOME": str(world.data), "RETRIEVAL_SELECTOR": "rank", "HOME": str(home)}
    result, addresses = called(strace, tmp_path / "calls", variables)
    assert not result.get("isError"), result
    assert addresses == set()


@pytest.mark.requirement("R129")
def test_a_build_and_a_search_connect_to_nothing(strace: str, tmp_path: Path) -> None:
    fresh = World(tmp_path / "world")
    fresh.library()
    for number, words in enumerate((["build"], ["search", "slow sql query"])):
        log = tmp_path / f"calls-{number}"
        trace = [strace, "-f", "-qq", "-e", "trace=socket", "-o", str(log)]
        variables = {**os.environ, **fresh.environment(), "PYTHONPATH": str(ROOT)}
        subprocess.run([*trace, *WORLD_COMMAND, *words], env=variables, check=True, capture_output=True, timeout=120)
        assert [line for line in log.read_text(encoding="utf-8").splitlines() if "AF_INET" in line] == []


@pytest.mark.long
@pytest.mark.requirement("R129")
def test_with_a_scout_only_its_model_is_connected_to(
    strace: str, omp: Path, world: World, home: Path, tmp_path: Path
) -> None:
    model = ModelServer(scout)
    try:
        variables = environment_for(
            omp,
            RETRIEVAL_HOME=str(world.data),
            RETRIEVAL_SELECTOR="omp",
            RETRIEVAL_OMP_COMMAND=str(omp),
            RETRIEVAL_SCOUT_URL=model.url,
            RETRIEVAL_SCOUT_MODEL="scout",
            RETRIEVAL_SCOUT_STANDBY="false",
            RETRIEVAL_SCOUT_TIMEOUT="60",
            HOME=str(home),
        )
        result, addresses = called(strace, tmp_path / "calls", variables)
    finally:
        model.close()
    assert result["structuredContent"]["id"] == SKILL, json.dumps(result["structuredContent"]["selection"])
    assert addresses == {f"127.0.0.1:{model.port}"}
