"""A model on loopback that does as a test tells it. Speaks `/v1/chat/completions`, streamed and whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Silence:
    """An answer that never comes."""


class Raw:
    """An HTTP answer as it is: a status, a body, headers."""

    def __init__(self, status, body=b"", headers=()):
        self.status = status
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.headers = dict(headers)


class Flood:
    """An answer of so many characters."""

    def __init__(self, characters):
        self.characters = characters

    def text(self):
        """Words that do not repeat: OMP ends a turn that goes in circles."""
        numbers = hashlib.shake_256(b"flood").hexdigest(self.characters // 2)
        return " ".join(numbers[at : at + 7] for at in range(0, self.characters, 8))


class ModelServer:
    """`play(turn, request)` gives the model's next turn: a text, a list of (tool, arguments), or one of the classes above.

    turn counts the tool results that the request holds. `requests` has path, headers and body of each request,
    `stop` is set at the end, so that nothing that was silent stays.
    """

    def __init__(self, play):
        self.play = play
        self.requests = []
        self.arrived = threading.Event()
        self.stop = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def port(self):
        return self._server.server_port

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def close(self):
        self.stop.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def messages(self, role, at=-1):
        """The texts of a role's messages in a request."""
        return [text_of(item) for item in self.requests[at]["body"]["messages"] if item["role"] == role]

    def everything(self):
        """Whatever the model has ever seen, as one text."""
        return "\n".join(json.dumps(item["body"], ensure_ascii=False) for item in self.requests)

    def _handler(server):  # noqa: N805 - the handler below has a self of its own
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_arguments):
                pass

            def do_GET(self):
                server.requests.append(
                    {
                        "path": self.path,
                        "headers": {name.lower(): value for name, value in self.headers.items()},
                        "body": {"messages": []},
                    }
                )
                self._whole(404, b"{}", {})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.requests.append(
                    {
                        "path": self.path,
                        "headers": {name.lower(): value for name, value in self.headers.items()},
                        "body": body,
                    }
                )
                server.arrived.set()
                turn = sum(item["role"] == "tool" for item in body["messages"])
                said = server.play(turn, body)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self._answer(said, body)
                self.close_connection = True

            def _answer(self, said, body):
                if said is Silence or isinstance(said, Silence):
                    server.stop.wait(120)
                elif isinstance(said, Raw):
                    self._whole(said.status, said.body, said.headers)
                elif body.get("stream"):
                    self._streamed(said)
                else:
                    self._whole(200, json.dumps(completion(said)).encode(), {})

            def _whole(self, status, body, headers):
                self.send_response(status)
                for name, value in {"content-type": "application/json", "content-length": len(body), **headers}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(body)

            def _streamed(self, said):
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for delta, finish in deltas(said):
                    self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
                usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
                self._event({"choices": [], "usage": usage})
                self.wfile.write(b"data: [DONE]\n\n")

            def _event(self, event):
                whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scout", **event}
                self.wfile.write(b"data: " + json.dumps(whole).encode() + b"\n\n")
                self.wfile.flush()

        return Handler


def text_of(message):
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def calls_of(said):
    """The tool calls of a turn on the wire. An argument that is a text is sent as it is, garbage or not."""
    return [
        {
            "index": at,
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for at, (name, given) in enumerate(said)
    ]


def completion(said):
    message = {"role": "assistant", "content": None}
    if isinstance(said, list):
        message["tool_calls"] = calls_of(said)
    else:
        message["content"] = said.text() if isinstance(said, Flood) else said
    return {
        "id": "c",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def deltas(said):
    yield {"role": "assistant", "content": ""}, None
    if isinstance(said, list):
        yield {"tool_calls": calls_of(said)}, None
        yield {}, "tool_calls"
        return
    text, step = (said.text(), 65_536) if isinstance(said, Flood) else (said, 40)
    for at in range(0, len(text), step):
        yield {"content": text[at : at + step]}, None
    yield {}, "stop"


def chooses(skill_id, *, query="clean csv"):
    """A model that searches, reads and chooses, as it should."""
    verdict = json.dumps({"choice": skill_id, "reason": "it fits the task"})
    turns = [[("catalog_search", {"query": query})], [("catalog_read", {"id": skill_id})], verdict]
    return lambda turn, _request: turns[min(turn, 2)]
