"""A client that speaks JSON-RPC by hand, to see every byte that a server writes and when it ends."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.support import ROOT

SERVE = [sys.executable, "-m", "serve"]
STANDIN = [sys.executable, str(Path(__file__).with_name("standin.py"))]
SECONDS = 60.0  # until a wait counts as lost
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "a client", "version": "1"},
}


def environment(**more: str) -> dict[str, str]:
    """What a server of this checkout is started with."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


class RawClient:
    """Starts a server and talks to it line by line. Use as a context: the process is ended in any case."""

    def __init__(self, command: list[str], variables: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=cwd or ROOT.parent,
            env=environment(**(variables or {})),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines: list[bytes] = []  # all that was read from standard output
        self.errors: list[bytes] = []
        self._arrived: queue.Queue[bytes | None] = queue.Queue()
        self._kept: list[dict[str, Any]] = []
        self._next = 0
        self._threads = [
            threading.Thread(target=self._read_output, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_given: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:  # bytes that were never read by a process that is gone
                    continue

    def _read_output(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._arrived.put(line)
        self._arrived.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors += self.process.stderr

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request; returns its id."""
        self._next += 1
        self.write(
            json.dumps({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params or {}}).encode() + b"\n"
        )
        return self._next

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode() + b"\n")

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request, whatever comes before it; that is kept for `kept`."""
        for message in self._kept:
            if message.get("id") == number:
                return message
        while True:
            line = self._arrived.get(timeout=SECONDS)
            assert line is not None, b"".join(self.errors).decode()
            message = json.loads(line)
            self._kept.append(message)
            if message.get("id") == number:
                return message

    @property
    def kept(self) -> list[dict[str, Any]]:
        """All messages read so far."""
        return self._kept

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result of a request."""
        answer = self.answer(self.send(method, params))
        assert "result" in answer, answer
        return answer["result"]

    def initialize(self) -> dict[str, Any]:
        result = self.ask("initialize", HELLO)
        self.notify("notifications/initialized")
        return result

    def begin_call(self, query: str, **meta: Any) -> int:
        params: dict[str, Any] = {"name": "retrieve_skill", "arguments": {"query": query}}
        return self.send("tools/call", {**params, "_meta": meta} if meta else params)

    def call(self, name: str = "retrieve_skill", **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def end(self) -> int:
        """Close standard input; returns the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(SECONDS)

    def wait(self) -> int:
        return self.process.wait(SECONDS)


def text_of(result: Mapping[str, Any]) -> str:
    """The text of a tool's result."""
    (block,) = result["content"]
    return str(block["text"])


def until(file: Path) -> None:
    """Wait for a file that another process makes."""
    pause = threading.Event()
    for _ in range(int(SECONDS * 100)):
        if file.exists():
            return
        pause.wait(0.01)
    raise AssertionError(f"{file.name} never came")
