"""The MCP Inspector's command line, a client of another make, over both transports."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.programs import environment_for, needed
from tests.server.client import STANDIN
from tests.server.web import TOKEN, Web
from tests.support import ROOT, run

pytestmark = pytest.mark.long


@pytest.fixture(scope="session")
def inspector() -> Path:
    """The MCP Inspector."""
    return needed("mcp-inspector")


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """How the inspector is told of the server."""
    if request.param == "stdio":
        yield ["-e", f"PYTHONPATH={ROOT}", "-e", f"HOME={os.environ['HOME']}", *STANDIN]
        return
    with Web(STANDIN) as web:
        yield [web.url, "--transport", "http", "--header", f"Authorization: Bearer {TOKEN}"]


def inspected(inspector: Path, target: list[str], *options: str) -> Any:
    done = run([inspector, "--cli", *target, *options], environment=environment_for(inspector), timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_it_lists_the_tools(inspector: Path, target: list[str]) -> None:
    listed = inspected(inspector, target, "--method", "tools/list")["tools"]

    assert [tool["name"] for tool in listed] == ["retrieve_skill", "retrieve_reference"]


def test_it_calls_a_tool(inspector: Path, target: list[str]) -> None:
    called = inspected(
        inspector, target, "--method", "tools/call", "--tool-name", "retrieve_skill", "--tool-arg", "query=thing"
    )

    assert called["structuredContent"]["id"] == "lib:thing"
    assert not called.get("isError", False)
