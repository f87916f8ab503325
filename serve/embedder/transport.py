"""Posts JSON to one address over a connection that stays open, and repeats what may succeed the next time."""

from __future__ import annotations

import base64
import contextlib
import http.client
import ssl
import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from serve.errors import EmbedderError, ExitCode, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

_LARGEST_ANSWER = 64 << 20  # bytes; 32 vectors of 4,096 numbers need 4 MB
_LONGEST_WAIT = 60.0  # seconds, whatever a server asks for
_FIRST_WAIT = 0.5
_WORTH_REPEATING = frozenset({408, 425, 429, 500, 502, 503, 504})
_SHOWN = 200  # characters of a server's own words


class AnswerTooLargeError(Exception):
    """The server sends more than any answer could hold."""


class Transport:
    """One address. May be used from several threads: each has its own connection.

    url: base or full address; see `address`. api_key: sent as a bearer token, in no message ever. sleep: waits between
    two tries, in seconds.
    """

    def __init__(self, url: str, *, api_key: str = "", sleep: Callable[[float], None] = time.sleep) -> None:
        self._secure, self._host, self._port, self._path, userinfo = address(url)
        self._secrets = [secret for secret in (api_key.strip(), userinfo, userinfo.partition(":")[2]) if secret]
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if authorization := _authorization(api_key.strip(), userinfo):
            self._headers["Authorization"] = authorization
        self._sleep = sleep
        self._own = threading.local()
        self._open: set[http.client.HTTPConnection] = set()
        self.shown = shown_url(url)

    def post(self, body: bytes, *, timeout: float, retries: int, longest_wait: float = _LONGEST_WAIT) -> bytes:
        """The body of the server's answer to `body`.

        timeout: seconds for one try, from connecting to the last byte. retries: how many tries follow the first.
        longest_wait: seconds between two tries at most, also when the server asks for more.
        Raises UnreachableError when no try succeeded, EmbedderError when the server refuses.
        """
        origin: Exception | None = None
        for attempt in range(retries + 1):
            wait = min(_FIRST_WAIT * 2**attempt, longest_wait)
            try:
                status, asked, answer = self._exchange(body, timeout)
            except ssl.SSLCertVerificationError as error:
                raise self._failed(
                    f"the embedding endpoint's certificate is not trusted ({error.verify_message})",
                    "correct the URL, or let SSL_CERT_FILE name the authority's certificate",
                ) from error
            except AnswerTooLargeError as error:
                raise self._failed(
                    f"the embedding endpoint sent more than {_LARGEST_ANSWER >> 20} MB", "check the URL"
                ) from error
            except (OSError, http.client.HTTPException) as error:
                cause, origin = _reason(error, timeout), error
            else:
                if status == http.client.OK:
                    return answer
                if status not in _WORTH_REPEATING:
                    raise self._refused(status, answer)
                cause, origin = f"HTTP {status}{self._words(answer)}", None
                wait = min(asked, longest_wait) if asked is not None else wait
            if attempt < retries:
                self._sleep(wait)
        tries = "one try" if retries == 0 else f"{retries + 1} tries"
        raise UnreachableError(
            f"the embedding endpoint does not answer: {cause} ({tries})",
            where=self.shown,
            next_step="start the server or correct its URL, then repeat the command",
        ) from origin

    def close(self) -> None:
        """Close all connections; a later `post` opens one again."""
        self._own = threading.local()
        while self._open:
            self._open.pop().close()

    def _exchange(self, body: bytes, timeout: float) -> tuple[int, float | None, bytes]:
        """Status, seconds to wait as the server asks, and body. A connection that went stale is replaced once."""
        deadline = time.monotonic() + timeout
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is not None:
            with contextlib.suppress(ConnectionError):
                return self._once(connection, body, deadline)
        return self._once(self._connect(timeout), body, deadline)

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=timeout)
        self._own.connection = connection
        self._open.add(connection)
        return connection

    def _drop(self, connection: http.client.HTTPConnection) -> None:
        connection.close()
        self._open.discard(connection)
        self._own.connection = None

    def _once(
        self, connection: http.client.HTTPConnection, body: bytes, deadline: float
    ) -> tuple[int, float | None, bytes]:
        try:
            _limit(connection, deadline)
            connection.request("POST", self._path, body, self._headers)
            response = connection.getresponse()
            answer = _read(response, connection, deadline)
        except BaseException:
            self._drop(connection)
            raise
        if response.will_close:
            self._drop(connection)
        return response.status, _retry_after(response.headers.get("Retry-After")), answer

    def _refused(self, status: int, answer: bytes) -> EmbedderError:
        words = self._words(answer)
        if status in (401, 403):
            return self._failed(
                f"the embedding endpoint refuses the API key: HTTP {status}{words}", "set RETRIEVAL_EMBEDDING_API_KEY"
            )
        if 300 <= status < 400:
            return self._failed(
                f"the embedding endpoint points elsewhere: HTTP {status}", "configure the address it moved to"
            )
        return self._failed(
            f"the embedding endpoint refuses the request: HTTP {status}{words}",
            "check the URL and the name of the model",
        )

    def _failed(self, what: str, next_step: str) -> EmbedderError:
        return EmbedderError(what, where=self.shown, next_step=next_step)

    def _words(self, answer: bytes) -> str:
        """What the server says of itself, on one line, without anything secret."""
        text = answer[: 4 * _SHOWN].decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return f": {text[:_SHOWN]}" if text else ""


def address(url: str) -> tuple[bool, str, int | None, str, str]:
    """Whether to encrypt, host, port, path with query, and "user:password" of an endpoint's URL.

    A base ("https://host/v1") gets "/embeddings"; a bare host gets "/v1/embeddings".
    Raises EmbedderError for what is no HTTP address.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise EmbedderError(
            "the embedding endpoint's URL is no HTTP address",
            where=shown_url(url),
            next_step='write it as "http://host:port/v1"',
            code=ExitCode.USAGE,
        )
    path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~-._")
    if not path:
        path = "/v1"
    if not path.endswith("/embeddings"):
        path += "/embeddings"
    if parts.query:
        path += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
    return parts.scheme == "https", parts.hostname, port, path, unquote(parts.netloc.rpartition("@")[0])


def shown_url(url: str) -> str:
    """The URL for a message: no user, no password, no query."""
    head, found, rest = url.strip().partition("://")
    if not found:
        head, rest = "", head
    place = rest.partition("?")[0].partition("#")[0]
    host, slash, path = place.partition("/")
    clean = f"{head}{found}{host.rpartition('@')[2]}{slash}{path}"
    return "".join(char for char in clean if char.isprintable())[:_SHOWN]


def _authorization(api_key: str, userinfo: str) -> str:
    if api_key:
        if not (api_key.isascii() and api_key.isprintable()):
            raise EmbedderError(
                "the embedding endpoint's API key holds characters that no HTTP header can carry",
                where="RETRIEVAL_EMBEDDING_API_KEY",
                next_step="set the key again, without line breaks and quotation marks",
                code=ExitCode.USAGE,
            )
        return f"Bearer {api_key}"
    return f"Basic {base64.b64encode(userinfo.encode()).decode()}" if userinfo else ""


def _read(response: http.client.HTTPResponse, connection: http.client.HTTPConnection, deadline: float) -> bytes:
    """The whole body: bounded in size, and in time also when it trickles."""
    pieces: list[bytes] = []
    size = 0
    while True:
        _limit(connection, deadline)
        piece = response.read1(1 << 16)
        if not piece:
            if response.length:  # the connection ended before the answer did
                raise http.client.IncompleteRead(b"", response.length)
            response.close()  # `read1` leaves it open, and the connection would take no further request
            return b"".join(pieces)
        size += len(piece)
        if size > _LARGEST_ANSWER:
            raise AnswerTooLargeError
        pieces.append(piece)


def _limit(connection: http.client.HTTPConnection, deadline: float) -> None:
    """Let the next operation take no longer than what is left. Raises TimeoutError when nothing is."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    if connection.sock is not None:
        connection.sock.settimeout(left)


def _retry_after(value: str | None) -> float | None:
    """Seconds, where the server gives a plain number of them."""
    if value is None or not value.strip().isdecimal():
        return None
    return min(float(value.strip()[:9]), _LONGEST_WAIT)


def _reason(error: Exception, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)[:_SHOWN] or type(error).__name__
