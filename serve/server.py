"""The MCP server: two tools over whatever transport carries them. Tools run in threads, so nothing ever waits for them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from serve import render, tools
from serve.arguments import checked
from serve.backend import Backend, Progress
from serve.errors import OperatorError
from serve.progress import Reporter

# Calls of each tool that run at the same time; further ones wait for their turn. A slow choice of skills holds no reference up.
AT_ONCE = {tools.SKILL: 16, tools.REFERENCE: 4}
_QUIET = 0.05  # seconds after the list of tools was sent until loading begins, so that it does not hold the list up
_LATEST = 1.0  # seconds after the start when loading begins for a client that asks for no list

Body = Callable[[threading.Event, Progress], types.CallToolResult]
Context = ServerRequestContext[Any, Any]
_log = logging.getLogger(__name__)


class ToolServer:
    """The tools of one backend as an MCP server."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.ready: Callable[[], Awaitable[None]] = _at_once  # waited for before a call begins
        self._turns = {name: asyncio.Semaphore(most) for name, most in AT_ONCE.items()}
        self._pools = {name: ThreadPoolExecutor(most, thread_name_prefix=name) for name, most in AT_ONCE.items()}
        self.server: Server[dict[str, Any]] = Server(
            "retrieval",
            version=version(),
            title="Retrieval",
            instructions=tools.INSTRUCTIONS,
            lifespan=self._lifespan,
            on_list_tools=self._list,
            on_call_tool=self._call_tool,
        )
        # The library's own tracing: nothing that this process does is to be reported anywhere.
        self.server.middleware.clear()

    @asynccontextmanager
    async def _lifespan(self, _server: Server[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        timer = asyncio.get_running_loop().call_later(_LATEST, self.backend.warm)
        try:
            yield {}
        finally:
            timer.cancel()

    async def _list(self, _context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        asyncio.get_running_loop().call_later(_QUIET, self.backend.warm)
        return types.ListToolsResult(tools=[skill_tool(), reference_tool()])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in _TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}; use {' or '.join(_TOOLS)}")
        body = _TOOLS[params.name]
        arguments = params.arguments

        def run(cancelled: threading.Event, progress: Progress) -> types.CallToolResult:
            return _answered(lambda: body(self.backend, arguments, cancelled, progress))

        async with self._turns[params.name]:
            await self.ready()
            return await self._in_thread(self._pools[params.name], run, context)

    async def _in_thread(self, pool: ThreadPoolExecutor, body: Body, context: Context) -> types.CallToolResult:
        """The result of a call that runs in a thread. When the client takes it back, the thread is told and left to end."""
        cancelled = threading.Event()
        async with Reporter(context.session.report_progress) as reporter:
            try:
                return await asyncio.get_running_loop().run_in_executor(pool, body, cancelled, reporter.tell)
            finally:
                cancelled.set()


async def _at_once() -> None:
    """Wait for nothing."""


def skill_tool() -> types.Tool:
    """The definition of retrieve_skill. It writes a copy into a lane, adds only, and a repetition changes nothing."""
    return types.Tool(
        name=tools.SKILL,
        title="Retrieve a skill",
        description=tools.SKILL_DESCRIPTION,
        input_schema=tools.SKILL_INPUT,
        output_schema=tools.SKILL_OUTPUT,
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


def reference_tool() -> types.Tool:
    """The definition of retrieve_reference, which only reads."""
    return types.Tool(
        name=tools.REFERENCE,
        title="Look something up in the references",
        description=tools.REFERENCE_DESCRIPTION,
        input_schema=tools.REFERENCE_INPUT,
        output_schema=tools.REFERENCE_OUTPUT,
        annotations=types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


def version() -> str:
    """The version of the installed package, or of a checkout that is not installed."""
    try:
        return metadata.version("retrieval")
    except metadata.PackageNotFoundError:
        return "0+checkout"


def _skill(backend: Backend, given: Any, cancelled: threading.Event, progress: Progress) -> types.CallToolResult:
    arguments = checked(given, tools.SKILL_INPUT)
    answer = render.clean(backend.skill(arguments["query"], cancelled, progress))
    return _result(render.skill_text(answer), answer)


def _reference(backend: Backend, given: Any, _cancelled: threading.Event, _progress: Progress) -> types.CallToolResult:
    arguments = checked(given, tools.REFERENCE_INPUT)
    answer = render.clean(backend.reference(arguments["query"], arguments["limit"], arguments["max_chars"]))
    return _result(render.reference_text(answer), answer)


_TOOLS = {tools.SKILL: _skill, tools.REFERENCE: _reference}


def _answered(body: Callable[[], types.CallToolResult]) -> types.CallToolResult:
    """The result of a body, whatever becomes of it: a model can act on a reason, not on a broken connection."""
    try:
        return body()
    except OperatorError as error:
        return _failed(error)
    except OSError as error:
        what = f"the system refused: {(error.strerror or str(error)).lower()}"
        return _failed(OperatorError(what, where=str(error.filename or ""), next_step="run `retrieval doctor`"))
    except Exception as error:  # noqa: BLE001 - see above; the trace goes to standard error
        _log.exception("a tool failed")
        what = f"a fault in Retrieval itself: {type(error).__name__}: {error}"
        return _failed(OperatorError(what, next_step="run `retrieval doctor`; report the fault if that finds nothing"))


def _result(text: str, answer: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=answer)


def _failed(error: OperatorError) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=render.error_text(error))], is_error=True)
