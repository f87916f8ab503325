"""The official client over standard input and output and over HTTP, in each era of the protocol that it speaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from serve import tools
from tests.server.client import SECONDS, STANDIN, environment, until
from tests.server.web import TOKEN, Web

pytestmark = pytest.mark.long

MODES = ("legacy", "auto", "2026-07-28")
Talk = Callable[[Client], Awaitable[Any]]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with Web(STANDIN) as running:
        yield running


@pytest.fixture(params=["stdio", "http"])
def converse(request: pytest.FixtureRequest, web: Web) -> Callable[[Talk, str], Any]:
    """Runs a conversation with a server and gives its result."""

    async def over_stdio(talk: Talk, mode: str) -> Any:
        parameters = StdioServerParameters(command=STANDIN[0], args=STANDIN[1:], env=environment())
        async with Client(parameters, mode=mode) as client:
            return await talk(client)

    async def over_http(talk: Talk, mode: str) -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=SECONDS) as sender,
            Client(streamable_http_client(web.url, http_client=sender), mode=mode) as client,
        ):
            return await talk(client)

    async def bounded(talk: Talk, mode: str) -> Any:
        with anyio.fail_after(SECONDS):
            return await (over_http if request.param == "http" else over_stdio)(talk, mode)

    return lambda talk, mode="auto": anyio.run(bounded, talk, mode)


@pytest.mark.parametrize("mode", MODES)
def test_the_tools_are_listed_with_schemas_and_true_hints(converse: Any, mode: str) -> None:
    async def talk(client: Client) -> Any:
        return (await client.list_tools()).tools

    skill, reference = converse(talk, mode)

    assert (skill.name, reference.name) == (tools.SKILL, tools.REFERENCE)
    assert (skill.input_schema, skill.output_schema) == (tools.SKILL_INPUT, tools.SKILL_OUTPUT)
    assert (reference.input_schema, reference.output_schema) == (tools.REFERENCE_INPUT, tools.REFERENCE_OUTPUT)
    hints = [
        (hint.read_only_hint, hint.destructive_hint, hint.idempotent_hint, hint.open_world_hint)
        for hint in (skill.annotations, reference.annotations)
    ]
    assert hints == [(False, False, True, False), (True, False, True, False)]


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_satisfies_its_schema_and_reads_as_text(converse: Any, mode: str) -> None:
    """The client refuses structured content that does not fit the schema it was told."""

    async def talk(client: Client) -> Any:
        await client.list_tools()
        return await client.call_tool(tools.SKILL, {"query": "thing"})

    result = converse(talk, mode)

    assert not result.is_error
    assert result.structured_content["text"] == "a text\nwith two lines\n"
    (block,) = result.content
    assert "Base directory: /lib/thing" in block.text


@pytest.mark.parametrize("mode", MODES)
def test_progress_reaches_who_asks_for_it(converse: Any, mode: str) -> None:
    async def talk(client: Client) -> list[tuple[float, float | None, str | None]]:
        seen: list[tuple[float, float | None, str | None]] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        await client.call_tool(tools.SKILL, {"query": "progress"}, progress_callback=note)
        return seen

    assert converse(talk, mode) == [(value, 1.0, f"at {value}") for value in (0.0, 0.25, 0.75, 1.0)]


@pytest.mark.parametrize("mode", MODES)
def test_ten_calls_at_once_are_all_answered(converse: Any, mode: str, tmp_path: Path) -> None:
    async def talk(client: Client) -> list[bool]:
        done: list[bool] = []

        async def one() -> None:
            done.append((await client.call_tool(tools.SKILL, {"query": f"meet {tmp_path} 10"})).is_error)

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(one)
        return done

    assert converse(talk, mode) == [False] * 10


@pytest.mark.filterwarnings("ignore:ping is removed")  # in the later protocol
@pytest.mark.parametrize("mode", ["legacy"])
def test_pings_are_answered_during_a_call(converse: Any, mode: str, tmp_path: Path) -> None:
    async def talk(client: Client) -> bool:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, tools.SKILL, {"query": f"wait {tmp_path / 'file'}"})
            await anyio.to_thread.run_sync(until, tmp_path / "file.begun")
            await client.send_ping()
            pinged = not (tmp_path / "file").exists()
            (tmp_path / "file").touch()
        return pinged

    assert converse(talk, mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_the_client_gives_up_is_told_so(converse: Any, mode: str, tmp_path: Path) -> None:
    async def talk(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, tools.SKILL, {"query": f"wait {tmp_path / 'file'}"})
            await anyio.to_thread.run_sync(until, tmp_path / "file.begun")
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(until, tmp_path / "file.cancelled")
        assert not (await client.call_tool(tools.SKILL, {"query": "thing"})).is_error

    converse(talk, mode)


def test_a_server_that_a_client_leaves_is_gone_before_the_client_would_end_it(tmp_path: Path) -> None:
    """The client waits two seconds and then sends a signal: the wrapper notes the code that the server ended with."""
    note = tmp_path / "code"
    script = 'note=$1; shift; "$@"; printf "%s" $? >"$note"'

    async def talk() -> None:
        parameters = StdioServerParameters(
            command="sh", args=["-c", script, "sh", str(note), *STANDIN], env=environment()
        )
        async with Client(parameters) as client:
            await client.call_tool(tools.SKILL, {"query": "thing"})

    anyio.run(talk)
    assert note.read_text(encoding="utf-8") == "0"
