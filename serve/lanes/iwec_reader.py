"""The pipes of a started `iwec`: lines of JSON out of it, bounded, and the last thing it said when it failed."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MAX_LINE = 16 << 20  # bytes of one answer
MAX_SAID = 300  # characters of a complaint that are handed on


class Garbage(Exception):  # noqa: N818 - what the program writes, not what went wrong here
    """The program writes what is no answer."""


class Pipes:
    """A running program. Raises OSError when it cannot be started."""

    def __init__(self, command: str, folder: Path, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [command],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._said = ""
        self._listener = threading.Thread(target=self._listen, name="iwec-stderr", daemon=True)
        self._listener.start()

    def write(self, data: bytes) -> None:
        """Write a line; that nobody reads it any more shows when the output ends."""
        stdin = self.process.stdin
        try:
            if stdin is not None and not stdin.closed:
                stdin.write(data)
                stdin.flush()
        except (OSError, ValueError):  # a ValueError when it was closed in between
            self._said = self._said or "its input is closed"

    def messages(self) -> Iterator[dict[str, Any]]:
        """What it writes, until it ends. Raises Garbage for anything but objects of JSON, a line each."""
        stdout = self.process.stdout
        while stdout is not None and (line := stdout.readline(MAX_LINE)):
            if not line.endswith(b"\n"):
                if len(line) >= MAX_LINE:
                    raise Garbage(f"IWE wrote a line of more than {MAX_LINE >> 20} MiB")
                return  # it ended within a line
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if not isinstance(message, dict):
                raise Garbage("IWE wrote something that is no JSON object")
            yield message

    def end_input(self) -> None:
        """Close its input, upon which it ends."""
        stdin = self.process.stdin
        try:
            if stdin is not None:
                stdin.close()
        except OSError:
            self._said = self._said or "its input is closed"

    def kill(self) -> None:
        """End it at once, stopped or not."""
        self.process.kill()

    def reap(self, grace: float) -> str:
        """Wait for its end, force it after `grace` seconds, let go of the pipes. Returns in words how it ended."""
        self.end_input()
        try:
            code = self.process.wait(grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._listener.join(grace)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None and not self._listener.is_alive():
                pipe.close()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"IWE {how}{': ' + self._said if self._said else ''}"

    def _listen(self) -> None:
        """Keep the last complaint; what it says of its own running is left aside."""
        stderr = self.process.stderr
        while stderr is not None and (line := stderr.readline(4096)):
            text = "".join(sign if sign.isprintable() else " " for sign in line.decode("utf-8", "replace")).strip()
            if text and " INFO " not in text:
                self._said = text[:MAX_SAID]
