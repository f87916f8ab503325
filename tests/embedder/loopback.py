"""A real HTTP server on loopback that answers embedding requests as a test tells it to."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def good_vector(text, dimension=8):
    """A vector that only this text has."""
    digest = hashlib.blake2b(text.encode(), digest_size=dimension).digest()
    return [(byte - 127.5) / 128 for byte in digest]


def good_rows(texts, dimension=8):
    return [{"index": at, "embedding": good_vector(text, dimension)} for at, text in enumerate(texts)]


class EmbeddingServer:
    """Speaks `/v1/embeddings`. `script` holds the next answers; when it is empty every answer is right.

    An entry is (status, body, headers), where body is bytes, an object for JSON, or a function of the request's texts;
    or a function of the handler, which then answers itself. `requests` records path, headers and body of each request,
    `connections` counts TCP connections, `stop` is set when the test ends.
    """

    def __init__(self):
        self.script = []
        self.requests = []
        self.connections = 0
        self.stop = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self):
        self.stop.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def texts(self):
        """The texts of all requests, in the order they came."""
        return [text for _, _, body in self.requests for text in body["input"]]

    def _handler(server):  # noqa: N805 - the handler below has a self of its own
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                server.connections += 1
                super().setup()

            def log_message(self, *args):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append((self.path, dict(self.headers), body))
                entry = server.script.pop(0) if server.script else (200, good_answer, {})
                if callable(entry):
                    entry(self)
                    return
                status, content, headers = entry
                if callable(content):
                    content = content(body["input"])
                if not isinstance(content, bytes):
                    content = json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

        return Handler


def good_answer(texts):
    return {"object": "list", "model": "m", "data": good_rows(texts), "usage": {"total_tokens": 1}}
