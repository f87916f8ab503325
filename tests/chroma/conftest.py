"""The real stores that the tests of this folder work on."""

from __future__ import annotations

import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.chroma.support import Server, folder

_numbers = itertools.count()


@pytest.fixture
def config(tmp_path):
    """An embedded store of its own."""
    return folder(tmp_path / "chroma")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for all tests that leave it running."""
    started = Server(tmp_path_factory.mktemp("server"))
    yield started
    started.kill()


@pytest.fixture
def namespace():
    """A namespace that no other test uses."""
    return f"test{next(_numbers)}"


@pytest.fixture
def own_server(tmp_path):
    """A server that the test may kill."""
    started = Server(tmp_path / "server")
    yield started
    started.kill()


@pytest.fixture
def answering():
    """Starts a small HTTP server that gives one answer to everything; returns its port and what it was asked."""
    running = []

    def start(code, text, headers=()):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append((self.path, self.headers))
                self.send_response(code)
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_ignored):
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        running.append(server)
        return server.server_address[1], asked

    yield start
    for server in running:
        server.shutdown()
        server.server_close()
