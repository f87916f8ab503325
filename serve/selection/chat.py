"""One exchange with an OpenAI-compatible chat endpoint. Nothing is followed, nothing is kept open, everything is bounded."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from serve.embedder.transport import shown_url
from serve.selection.limits import ChoiceError, Limits
from serve.selection.untrusted import one_line

LARGEST_ANSWER = 4 << 20  # bytes
CONNECT_SECONDS = 10.0
FIRST_WAIT = 0.5
LONGEST_WAIT = 10.0  # seconds, whatever a server asks for
TRIES = 5
TRIES_UNREACHED = 2  # where nobody answers at all, waiting seldom helps
WORTH_REPEATING = frozenset({408, 425, 429, 500, 502, 503, 504})
SHOWN = 200
_SAFE = "/%:@!$&'()*+,;=~-._"


class Address:
    """Where a chat endpoint is. Raises ChoiceError for what is no HTTP address."""

    def __init__(self, url: str) -> None:
        self.shown = shown_url(url)
        try:
            parts = urlsplit(url.strip())
            self.port = parts.port
        except ValueError:
            parts, self.port = urlsplit(""), None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ChoiceError(f"the model's URL is no HTTP address ({self.shown})")
        if parts.username or parts.password:
            raise ChoiceError(f"the model's URL holds a user name: give the key by itself ({self.shown})")
        self.secure = parts.scheme == "https"
        self.host: str = parts.hostname
        path = quote(parts.path.rstrip("/"), safe=_SAFE) or "/v1"
        path = path if path.endswith("/chat/completions") else f"{path}/chat/completions"
        self.path = f"{path}?{quote(parts.query, safe=_SAFE + '?')}" if parts.query else path

    @property
    def base(self) -> str:
        """The URL as clients want it that add "/chat/completions" themselves."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        path = self.path.partition("?")[0].removesuffix("/chat/completions")
        return f"{'https' if self.secure else 'http'}://{host}{port}{path}"


class Endpoint:
    """A chat endpoint with its key, which stands in no message ever. Callable from several threads."""

    def __init__(self, url: str, api_key: str = "") -> None:
        """Raises ChoiceError for a URL or key that cannot be used."""
        self.address = Address(url)
        self._key = api_key.strip()
        if not (self._key.isascii() and (self._key.isprintable() or not self._key)):
            raise ChoiceError("the model's API key holds characters that no HTTP header can carry")

    def ask(self, body: dict[str, Any], limits: Limits) -> dict[str, Any]:
        """The JSON object that the endpoint answers. What may succeed the next time is repeated within the limits.

        Raises ChoiceError when the endpoint refuses, or when the tries or the time are used up: with what was wrong last.
        """
        data = msgspec.json.encode(body)
        for attempt in range(1, TRIES + 1):
            pause, most = min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT), TRIES
            try:
                status, asked, answer = self._exchange(data, limits)
            except _OutOfReachError as error:
                last, most = str(error), TRIES_UNREACHED
            else:
                if status == http.client.OK:
                    return self._parsed(answer)
                last = f"HTTP {status}{self._words(answer)}"
                if status not in WORTH_REPEATING:
                    raise ChoiceError(self._refusal(status, last))
                pause = pause if asked is None else max(0.05, min(asked, LONGEST_WAIT))
            if attempt >= most or pause >= limits.left():
                break
            limits.pause(pause)
        raise ChoiceError(f"the model's endpoint does not answer: {last} ({self.address.shown})")

    def _exchange(self, data: bytes, limits: Limits) -> tuple[int, float | None, bytes]:
        """One try in a thread of its own: neither a name server nor a silent server can hold the choice."""
        limits.check()
        address = self.address
        kind = http.client.HTTPSConnection if address.secure else http.client.HTTPConnection
        connection = kind(address.host, address.port, timeout=min(CONNECT_SECONDS, limits.left()))
        try:
            return limits.bounded(lambda: self._once(connection, data, limits), stop=lambda: _cut(connection))
        finally:
            connection.close()

    def _once(
        self, connection: http.client.HTTPConnection, data: bytes, limits: Limits
    ) -> tuple[int, float | None, bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            connection.connect()
            if connection.sock is not None:
                # A little longer than is left: who waits for this thread says that the time is up, and cuts the connection.
                connection.sock.settimeout(limits.left() + 1.0)
            connection.request("POST", self.address.path, data, headers)
            response = connection.getresponse()
            return response.status, _seconds(response.headers.get("Retry-After")), _read(response)
        except ssl.SSLCertVerificationError as error:
            raise ChoiceError(f"the model's endpoint has no trusted certificate: {error.verify_message}") from None
        except (OSError, http.client.HTTPException) as error:
            raise _OutOfReachError(_cause(error)) from None

    def _parsed(self, answer: bytes) -> dict[str, Any]:
        try:
            value = msgspec.json.decode(answer)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            raise ChoiceError(f"the model's endpoint answered something else than JSON{self._words(answer)}") from None
        if not isinstance(value, dict):
            raise ChoiceError("the model's endpoint answered something else than a JSON object")
        return value

    def _refusal(self, status: int, said: str) -> str:
        if status in {401, 403}:
            return f"the model's endpoint refuses the API key: {said}"
        if 300 <= status < 400:
            return f"the model's endpoint points elsewhere, which is not followed: HTTP {status} ({self.address.shown})"
        return f"the model's endpoint refuses the request: {said}"

    def _words(self, answer: bytes) -> str:
        text = answer[: 8 * SHOWN].decode("utf-8", "replace")
        if self._key:
            text = text.replace(self._key, "[key]")
        line = one_line(text, SHOWN)
        return f": {line}" if line else ""


class _OutOfReachError(Exception):
    """A try that did not come through."""


def _read(response: http.client.HTTPResponse) -> bytes:
    pieces, size = [], 0
    while piece := response.read1(1 << 16):
        size += len(piece)
        if size > LARGEST_ANSWER:
            raise ChoiceError(f"the model's endpoint sent more than {LARGEST_ANSWER >> 20} MB")
        pieces.append(piece)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(pieces)


def _cut(connection: http.client.HTTPConnection) -> None:
    """Wake the thread that waits on a connection. `close` alone would leave it waiting."""
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _seconds(value: str | None) -> float | None:
    """What a server asks to wait, where it gives a plain number."""
    return float(value.strip()[:9]) if value is not None and value.strip().isdecimal() else None


def _cause(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer came"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return one_line(str(error), SHOWN) or type(error).__name__
