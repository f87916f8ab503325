"""OMP's stdout as frames: one JSON object a line, large ones in chunks. Bounded in every direction, and never blocking OMP."""

from __future__ import annotations

import base64
import binascii
import os
from queue import SimpleQueue
from threading import Thread
from typing import Any

import msgspec

MAX_LINE = 1 << 20  # bytes of one line; OMP promises no more
MAX_WHOLE = 8 << 20  # bytes of one frame put together from chunks
MAX_KEPT = 16 << 20  # bytes of all frames that anybody waits for
MAX_STRAY = 200  # lines that are no frames
STDERR_KEPT = 4_096

Frame = dict[str, Any]

# Frames that somebody acts upon. A streamed answer repeats itself whole with every word, in frames that nobody needs.
HEEDED = frozenset(
    {
        *("ready", "response", "prompt_result", "agent_end", "message_end", "auto_retry_start"),
        *("host_tool_call", "extension_ui_request", "rpc_frame_error"),
    }
)
_UNHEEDED_STARTS = (b'{"type":"message_update"', b'{"type":"tool_execution_', b'{"type":"message_start"')


class FrameError(Exception):
    """What comes is not the protocol."""


class Assembler:
    """Puts chunked frames together. One sequence at a time, in order, as its first chunk has announced it."""

    def __init__(self) -> None:
        self._head: tuple[object, ...] | None = None
        self._data = bytearray()
        self._next = 0

    def push(self, frame: Frame) -> Frame | None:
        """The frame itself, the frame that a last chunk completes, or None. Raises FrameError."""
        if frame.get("type") != "rpc_chunk":
            if self._head is not None:
                raise FrameError("a frame in chunks was interrupted")
            return frame
        head = (frame.get("chunkId"), frame.get("count"), frame.get("byteLength"))
        _chunk, count, length = head
        if not isinstance(count, int) or not isinstance(length, int) or not 1 <= count <= MAX_WHOLE or length < 1:
            raise FrameError("a chunk without sensible numbers came")
        if length > MAX_WHOLE:
            raise FrameError(f"a frame of {length} bytes was announced")
        if self._head is None:
            self._head, self._next, self._data = head, 0, bytearray()
        if head != self._head or frame.get("index") != self._next:
            raise FrameError("chunks came out of order")
        self._data += _decoded(frame.get("data"))
        self._next += 1
        if len(self._data) > length:
            raise FrameError("chunks came with more than was announced")
        if self._next < count:
            return None
        self._head = None
        if len(self._data) != length:
            raise FrameError("chunks came with less than was announced")
        return parsed(bytes(self._data))


def parsed(line: bytes) -> Frame:
    """The object of a line. Raises FrameError when it holds none."""
    try:
        frame = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise FrameError("a line that is no JSON came") from None
    if not isinstance(frame, dict):
        raise FrameError("a line that is no JSON object came")
    return frame


class Reader(Thread):
    """Reads a process's stdout to its end, whatever comes. `frames` gets what is heeded, then a FrameError or None once.

    After a FrameError everything is read and thrown away, so that the process can end.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(name="retrieval-scout-stdout", daemon=True)
        self.frames: SimpleQueue[Frame | FrameError | None] = SimpleQueue()
        self._descriptor = descriptor
        self._assembler = Assembler()
        self._kept = 0
        self._stray = 0

    def run(self) -> None:
        try:
            self._read()
        except FrameError as error:
            self.frames.put(error)
            while _some(self._descriptor):
                pass
        finally:
            self.frames.put(None)

    def _read(self) -> None:
        rest = bytearray()
        while data := _some(self._descriptor):
            start = len(rest)
            rest += data
            if data.find(b"\n") < 0:
                if len(rest) > MAX_LINE:
                    raise FrameError(f"a line of more than {MAX_LINE} bytes came")
                continue
            *lines, tail = bytes(rest).split(b"\n") if start else data.split(b"\n")
            for line in lines:
                self._line(line)
            rest = bytearray(tail)

    def _line(self, line: bytes) -> None:
        if len(line) > MAX_LINE:
            raise FrameError(f"a line of more than {MAX_LINE} bytes came")
        if line.startswith(_UNHEEDED_STARTS):
            return
        if not line.startswith(b"{"):
            self._stray += bool(line.strip())
            if self._stray > MAX_STRAY:
                raise FrameError(f"more than {MAX_STRAY} lines came that are no frames")
            return
        frame = parsed(line)
        if frame.get("type") in HEEDED or frame.get("type") == "rpc_chunk":
            self._kept += len(line)
        if self._kept > MAX_KEPT:
            raise FrameError(f"frames of more than {MAX_KEPT} bytes came")
        whole = self._assembler.push(frame)
        if whole is not None and whole.get("type") in HEEDED:
            self.frames.put(whole)


class Tail(Thread):
    """Reads a process's stderr to its end and keeps the last of it."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(name="retrieval-scout-stderr", daemon=True)
        self._descriptor = descriptor
        self._kept = b""

    def run(self) -> None:
        while data := _some(self._descriptor):
            self._kept = (self._kept + data)[-STDERR_KEPT:]

    def text(self) -> str:
        """What was kept."""
        return self._kept.decode("utf-8", "replace")


def _some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""


def _decoded(data: object) -> bytes:
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except (binascii.Error, ValueError):
        raise FrameError("a chunk that is no base64 came") from None
