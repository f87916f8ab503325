"""Serving over streamable HTTP on this machine, for clients that start no process of their own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
from collections.abc import Iterator

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from serve.command import Wanted, start
from serve.errors import ConfigError, OperatorError
from serve.guard import NAMES, Guard, Sessions
from serve.server import ToolServer
from serve.stdio import on_signals

PATH = "/mcp"
SHORTEST_TOKEN = 16
_GRACE = 2  # seconds for requests under way when the server is told to end
_SESSIONS = 64  # that are kept; a new one ends the one that was idle for longest
_SESSIONS_AT_MOST = 128  # with those that are busy or just being opened; beyond it a new client is refused
_BODY = 1 << 20  # bytes of a request; a query has at most 20,000 characters


def serve(wanted: Wanted) -> int:
    """Serve until a signal comes. Returns the exit code. Raises ConfigError without a token, OperatorError for a port in use."""
    backend, server = start(wanted)
    token = backend.settings.http_token
    if len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"serving over HTTP needs a token of at least {SHORTEST_TOKEN} characters",
            where="RETRIEVAL_HTTP_TOKEN",
            next_step="set it, for instance to what `python -c 'import secrets; print(secrets.token_urlsafe())'` prints",
        )
    listening = _listen(*(wanted.http or ("127.0.0.1", 0)))
    gc.freeze()
    gc.enable()
    try:
        return asyncio.run(_serve(server, token, listening))
    finally:
        backend.close()


def _listen(host: str, port: int) -> socket.socket:
    name = "127.0.0.1" if host == "localhost" else host
    listening = socket.socket(socket.AF_INET6 if ":" in name else socket.AF_INET)
    try:
        if sys.platform != "win32":  # where it would let another program take the port over
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((name, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise OperatorError(
            f"the port cannot be served: {(error.strerror or str(error)).lower()}",
            where=f"{host}:{port}",
            next_step="choose another port",
        ) from error
    return listening


async def _serve(server: ToolServer, token: str, listening: socket.socket) -> int:
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    hosts = [f"{name}:{port}" for name in NAMES]
    app = server.server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=_BODY,
        max_sessions=_SESSIONS_AT_MOST,
        transport_security=TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
        ),
    )
    sessions = Sessions(app, most=_SESSIONS, host=hosts[0], path=PATH)
    config = uvicorn.Config(
        Guard(sessions, token=token, port=port),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_GRACE,
    )
    ended: list[int] = []
    web = _Server(config)

    def end(code: int) -> None:
        ended.append(code)
        web.should_exit = True

    on_signals(end)
    sys.stderr.write(f"serving on http://{shown}:{port}{PATH}\n")
    sys.stderr.flush()
    await web.serve(sockets=[listening])
    return ended[0] if ended else 1


class _Server(uvicorn.Server):
    """The signals are ours: uvicorn would raise them again at the end, and the process would not end with its code."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield
