"""Lets a request through to the server only when it comes from this machine's own client: host, origin and token.

And sees to it that clients which never say goodbye do not take the places of new ones.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SESSION = b"mcp-session-id"
NAMES = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """An ASGI application around another one. Refusals are decided by headers alone, before a body is read.

    A page in a browser can make it send requests here: a name of its own that leads to this machine shows in Host, the page
    itself in Origin. Neither knows the token.
    """

    def __init__(self, app: App, *, token: str, port: int) -> None:
        self.app = app
        self._token = token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in NAMES}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421, 403 or 401, or hand the request on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope["headers"]) if scope["type"] == "http" else (403, b"only HTTP is served")
        if refusal is None:
            await self.app(scope, receive, send)
        else:
            await _refuse(send, *refusal)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> tuple[int, bytes] | None:
        given: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            given.setdefault(name.lower(), []).append(value.strip())
        if len(given.get(b"host", [])) != 1 or given[b"host"][0].lower() not in self._hosts:
            return 421, b"this server is not called so"
        if any(origin.lower() not in self._origins for origin in given.get(b"origin", [])):
            return 403, b"pages of other origins may not ask"
        authorization = given.get(b"authorization", [])
        scheme, _, token = authorization[0].partition(b" ") if len(authorization) == 1 else (b"", b"", b"")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            return 401, b"send the token of RETRIEVAL_HTTP_TOKEN as Authorization: Bearer"
        return None


async def _refuse(send: Send, status: int, reason: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(reason)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="retrieval"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reason})


class Sessions:
    """An ASGI application around another one that ends the session unused for longest when there are too many.

    A client may go without ending its session; one that is still there and finds its session ended opens another.
    """

    def __init__(self, app: App, *, most: int, host: str, path: str) -> None:
        self.app = app
        self._most = most
        self._path = path
        self._host = host.encode()
        self._busy: dict[bytes, int] = {}  # requests under way of each session, the one unused for longest first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on and note what session it opens, uses or ends."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = _session(scope["headers"])
        opened: list[bytes] = []

        async def watch(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                new = _session(message.get("headers", []))
                if given is None and new is not None and message["status"] < 400:
                    opened.append(new)
                    self._use(new, 1)
                elif given is not None and (message["status"] == 404 or scope["method"] == "DELETE"):
                    self._busy.pop(given, None)
            await send(message)

        if given in self._busy:
            self._use(given, 1)
        try:
            await self.app(scope, receive, watch)
        finally:
            self._use(opened[0] if opened else given, -1)
        if opened:
            await self._make_room()

    def _use(self, session: bytes | None, change: int) -> None:
        """Count a request of a session, which makes it the one used last; forgotten ones stay so."""
        if session is not None and (change > 0 or session in self._busy):
            self._busy[session] = self._busy.pop(session, 0) + change

    async def _make_room(self) -> None:
        while len(self._busy) > self._most:
            idle = next((session for session, requests in self._busy.items() if not requests), None)
            if idle is None:
                return
            del self._busy[idle]
            await self._end(idle)

    async def _end(self, session: bytes) -> None:
        """End a session as its client would."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "DELETE",
            "scheme": "http",
            "path": self._path,
            "raw_path": self._path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(b"host", self._host), (SESSION, session)],
        }

        async def nothing() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignored(_message: MutableMapping[str, Any]) -> None:
            return

        await self.app(scope, nothing, ignored)


def _session(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    return next((bytes(value) for name, value in headers if name.lower() == SESSION), None)
