"""The real harnesses start the MCP server as they are told and list its two tools."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harnesses.conftest import COMMAND, TOOLS, arguments, variables
from tests.programs import environment_for
from tests.projection.conftest import Lines, Omp
from tests.world import World

pytestmark = pytest.mark.long

SECONDS = 120


def tool_names(text: str) -> set[str]:
    """Which of the two tools a text names."""
    return {name for name in TOOLS if name in text}


@contextmanager
def first_line_of(command: list[str], environment: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The first line of JSON that a program prints; the program is ended afterwards."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def test_claude_code_connects_and_lists_the_tools(claude: Path, index: World, home: Path) -> None:
    server = {"type": "stdio", "command": COMMAND, "args": arguments("claude"), "env": variables(index)}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"retrieval": server}}), encoding="utf-8")
    environment = environment_for(
        claude,
        ANTHROPIC_API_KEY="none",
        ANTHROPIC_BASE_URL="http://127.0.0.1:9",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        MCP_CONNECTION_NONBLOCKING="0",
    )
    command = [str(claude), "-p", "hi", "--output-format", "stream-json", "--verbose"]
    with first_line_of(command, environment) as started:
        assert started["mcp_servers"] == [{"name": "retrieval", "status": "connected"}]
        mine = {name.removeprefix("mcp__retrieval__") for name in started["tools"] if "retrieval" in name}
    assert mine == TOOLS


def test_codex_connects_and_lists_the_tools(codex: Path, index: World, home: Path) -> None:
    lines = ["[mcp_servers.retrieval]", f"command = {json.dumps(COMMAND)}", f"args = {json.dumps(arguments('codex'))}"]
    lines += ["[mcp_servers.retrieval.env]", *(f"{key} = {json.dumps(text)}" for key, text in variables(index).items())]
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    program = Lines([str(codex), "app-server"], Path.cwd(), environment_for(codex))
    try:
        program.send({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}})
        program.until(lambda message: message.get("id") == 1)
        program.send({"method": "initialized"})
        program.send({"id": 2, "method": "mcpServerStatus/list", "params": {}})
        answer = program.until(lambda message: message.get("id") == 2)
    finally:
        program.close()
    (server,) = [item for item in answer["result"]["data"] if item["name"] == "retrieval"]
    assert set(server["tools"]) == TOOLS


def test_omp_connects_and_lists_the_tools(omp: Path, index: World, home: Path) -> None:
    agent = home / ".omp" / "agent"
    agent.mkdir(parents=True)
    server = {"type": "stdio", "command": COMMAND, "args": arguments("omp"), "env": variables(index)}
    (agent / "mcp.json").write_text(json.dumps({"mcpServers": {"retrieval": server}}), encoding="utf-8")
    program = Omp(omp, home, home / "lane")
    try:
        program.send({"id": "test", "type": "prompt", "message": "/mcp test retrieval"})
        told = program.until(lambda message: message.get("type") == "command_output" and "tool" in json.dumps(message))
        assert "2 tools" in json.dumps(told)
        prompt = json.dumps(program.ask("get_state"))
    finally:
        program.close()
    assert tool_names(prompt) == TOOLS


def test_hermes_connects_and_lists_the_tools(hermes: Path, index: World, home: Path) -> None:
    server = {"command": COMMAND, "args": arguments("hermes"), "env": variables(index), "enabled": True}
    config = {"mcp_servers": {"retrieval": server}, "security": {"tirith_enabled": False}}
    folder = home / "hermes"
    folder.mkdir()
    # JSON is YAML.
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run(
        [str(hermes), "mcp", "test", "retrieval"],
        env=environment_for(hermes, HERMES_HOME=str(folder), COLUMNS="200"),
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert "Connected" in done.stdout, done.stdout + done.stderr
    assert tool_names(done.stdout) == TOOLS
