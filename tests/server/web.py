"""A server over HTTP for a test, and requests to it by hand."""

from __future__ import annotations

import contextlib
import http.client
import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Self

from tests.server.client import SECONDS, environment
from tests.support import ROOT

TOKEN = "a-token-of-this-test-alone"


class Web:
    """Starts a server on a free port. Use as a context."""

    def __init__(self, command: list[str], **variables: str) -> None:
        self.process = subprocess.Popen(
            [*command, "--http", "0"],
            cwd=ROOT.parent,
            env=environment(RETRIEVAL_HTTP_TOKEN=TOKEN, **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.fullmatch(r"serving on (http://127\.0\.0\.1:(\d+)/mcp)\n", line)
        assert found is not None, line + self.process.stderr.read()
        self.url, self.port = found[1], int(found[2])
        return self

    def __exit__(self, *_given: object) -> None:
        self.process.terminate()
        self.process.communicate(timeout=SECONDS)

    def post(self, headers: Mapping[str, str | None], path: str = "/mcp", body: bytes = b"{}") -> tuple[int, str]:
        """Status and text of a request with these headers; those given as None are left out."""
        with self.send("POST", headers, path, body) as response:
            return response.status, response.read().decode()

    @contextlib.contextmanager
    def send(
        self, method: str, headers: Mapping[str, str | None], path: str = "/mcp", body: bytes = b""
    ) -> Iterator[http.client.HTTPResponse]:
        """A request whose answer is still to be read; at the end the connection is closed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        usual = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(body)),
        }
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**usual, **headers}.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        with contextlib.closing(connection):
            yield connection.getresponse()
