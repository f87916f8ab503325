"""Serving over standard input and output: one client, and the process ends with it."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import select
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp import types
from mcp.shared.message import SessionMessage

from serve.errors import ExitCode
from serve.server import ToolServer
from serve.wire import Fault, faults, lines, mended

GRACE = 1.0  # seconds without an answer after which a client that has said its last is left
_LAST = 0.3  # seconds more for what is called off to end by itself
MOST_OPEN = 256  # requests under way; whoever sends more waits
MOST_UNSENT = 4 << 20  # bytes of answers that the client has not read, from which on it is not listened to
_PIECE = 1 << 16  # bytes that are written at a time, unless one message is longer
_log = logging.getLogger(__name__)
ENDING = {"SIGTERM": ExitCode.OK, "SIGHUP": ExitCode.OK, "SIGINT": ExitCode.INTERRUPTED}


def serve(server: ToolServer, wire: tuple[int, int]) -> int:
    """Answer until the client closes its end or a signal comes. Returns the exit code."""
    return anyio.run(_serve, server, wire)


async def _serve(server: ToolServer, wire: tuple[int, int]) -> int:
    ended: list[int] = []
    async with anyio.create_task_group() as group:

        def end(code: int) -> None:
            ended.append(code)
            group.cancel_scope.cancel()

        on_signals(end)
        group.start_soon(_answer, server, wire, end)
    return ended[0] if ended else int(ExitCode.OK)


async def _answer(server: ToolServer, wire: tuple[int, int], end: Callable[[int], None]) -> None:
    traffic = Traffic()
    output = Output(wire[1], traffic)
    server.ready = traffic.until_sent
    coming, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, going = anyio.create_memory_object_stream[SessionMessage](math.inf)
    inner = server.server

    async def listen() -> None:
        async with coming:
            await Input(wire[0], traffic, output).listen(coming)
        await anyio.sleep(_LAST)
        end(int(ExitCode.OK))

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            group.start_soon(output.take, going)
            group.start_soon(output.send)
            await inner.run(incoming, outgoing, inner.create_initialization_options())
            await traffic.moving(lambda: not traffic.unsent)
            end(int(ExitCode.OK))
    except* (BrokenPipeError, ConnectionResetError):
        _log.info("the client has gone")
    end(int(ExitCode.OK))


class Traffic:
    """What the client is still owed: requests without an answer, and answers that it has not read."""

    def __init__(self) -> None:
        self.unsent = 0  # bytes
        self._open: Counter[str | int] = Counter()  # an id may come twice
        self._answers = 0
        self._change = asyncio.Event()

    def opened(self, number: str | int) -> None:
        """A request came."""
        self._open[number] += 1

    def answered(self, number: str | int | None) -> None:
        """A request was answered. None: what came had no id that counts."""
        self._answers += 1
        self._close(number)

    def called_off(self, number: Any) -> None:
        """The client wants no answer any more. The library takes the text of a number for that number, and the reverse."""
        for known in [known for known in self._open if str(known) == str(number)]:
            self._close(known)

    def weigh(self, size: int) -> None:
        """So many bytes are to be sent, or were sent if less than 0."""
        self.unsent += size
        self._changed()

    def room(self) -> bool:
        """Whether one more request is welcome."""
        return self._open.total() < MOST_OPEN and self.unsent < MOST_UNSENT

    def still(self) -> bool:
        """Whether nothing is owed."""
        return not self._open and not self.unsent

    async def until_sent(self) -> None:
        """Wait until more answers may be made."""
        await self._until(lambda: self.unsent < MOST_UNSENT)

    async def moving(self, ready: Callable[[], bool]) -> bool:
        """Wait for a condition as long as the client is given answers. Whether it came true."""
        while not ready():
            answers = self._answers
            with anyio.move_on_after(GRACE):
                await self._until(ready)
            if answers == self._answers:
                return ready()
        return True

    async def _until(self, ready: Callable[[], bool]) -> None:
        while not ready():
            await self._change.wait()

    def _close(self, number: str | int | None) -> None:
        if number is not None:
            self._open[number] -= 1
            if self._open[number] <= 0:
                del self._open[number]
        self._changed()

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()


class Input:
    """The messages of a client. It is not listened to while it is owed too much.

    A thread of its own reads: one of the library would have to be waited for at the end, and it may be blocked for ever by a
    client that neither writes nor goes. The descriptor stays open for the same reason.
    """

    def __init__(self, descriptor: int, traffic: Traffic, output: Output) -> None:
        self._descriptor = descriptor
        self._traffic = traffic
        self._output = output
        self._lines: asyncio.Queue[str | Fault | None] = asyncio.Queue(1)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="input", daemon=True).start()

    async def listen(self, to: ObjectSendStream[SessionMessage | Exception]) -> None:
        """Hand on what the client says, until it has said its last and no answer comes any more.

        What is under way is dropped then, so whoever pipes a few requests in would miss the last answers.
        """
        while (line := await self._lines.get()) is not None:
            message = line if isinstance(line, Fault) else understood(line)
            if not isinstance(message, types.JSONRPCNotification) and not await self._admitted():
                return
            if isinstance(message, Fault):
                self._output.refuse(message)
            elif isinstance(message, list):
                for fault in message:
                    self._output.refuse(fault)
            else:
                self._note(message)
                await to.send(SessionMessage(message))
        await self._traffic.moving(self._traffic.still)

    async def _admitted(self) -> bool:
        """Wait for room. False when the client has gone meanwhile, leaving what it was owed unread."""
        while not await self._traffic.moving(self._traffic.room):
            if _hung_up(self._descriptor):
                return False
        return True

    def _note(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._traffic.opened(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._traffic.called_off((message.params or {}).get("requestId"))

    def _read(self) -> None:
        with os.fdopen(self._descriptor, "rb", closefd=False) as file:
            try:
                for line in lines(file):
                    self._hand_over(line)
            except OSError as error:  # the client's end is no file that can be read
                _log.warning("standard input cannot be read: %s", error)
            except (RuntimeError, asyncio.CancelledError):  # the loop has ended, and the process will
                return
            try:
                self._hand_over(None)
            except (RuntimeError, asyncio.CancelledError):
                return

    def _hand_over(self, line: str | Fault | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()


def understood(line: str) -> types.JSONRPCMessage | list[Fault]:
    """The message that a line holds, or what is wrong with it."""
    message = _message(line)
    if message is None and (better := mended(line)) is not None:
        message = _message(better)
    return faults(line) if message is None else message


def _message(text: str) -> types.JSONRPCMessage | None:
    try:
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
        # The library takes a request with an id that it cannot use for a notification, which nobody answers.
        misread = isinstance(message, types.JSONRPCNotification) and "id" in json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if misread else message


def _hung_up(descriptor: int) -> bool:
    """Whether nobody will write there any more, whatever has not been read yet."""
    if not hasattr(select, "poll"):
        return False
    polled = select.poll()
    polled.register(descriptor, getattr(select, "POLLRDHUP", 0))
    return bool(polled.poll(0))


class Output:
    """What a client is sent. A client that does not read keeps nobody from ending."""

    def __init__(self, descriptor: int, traffic: Traffic) -> None:
        self._file = os.fdopen(descriptor, "wb", closefd=False)
        self._traffic = traffic
        self._taken: deque[tuple[bytes, str | int | None, bool]] = deque()  # with the id of what it answers
        self._some = asyncio.Event()
        self._turn = anyio.CapacityLimiter(1)

    async def take(self, messages: ObjectReceiveStream[SessionMessage]) -> None:
        """Take what the server says; `send` sends it."""
        async with messages:
            async for item in messages:
                message = item.message
                data = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                    self._put(data, message.id, True)
                else:
                    self._put(data, None, False)

    def refuse(self, fault: Fault) -> None:
        """Answer to something that is no message."""
        error = {"code": fault.code, "message": fault.what}
        self._put(json.dumps({"jsonrpc": "2.0", "id": fault.number, "error": error}).encode(), None, True)

    def _put(self, data: bytes, number: str | int | None, answers: bool) -> None:
        self._taken.append((data + b"\n", number, answers))
        self._traffic.weigh(len(data) + 1)
        self._some.set()

    async def send(self) -> None:
        """Send what is taken, for ever. Raises BrokenPipeError when nobody will ever read it."""
        while True:
            await self._some.wait()
            batch = [self._taken.popleft()]
            size = len(batch[0][0])
            while self._taken and size + len(self._taken[0][0]) <= _PIECE:
                batch.append(self._taken.popleft())
                size += len(batch[-1][0])
            if not self._taken:
                self._some.clear()
            data = b"".join(item[0] for item in batch)
            await to_thread.run_sync(self._send, data, abandon_on_cancel=True, limiter=self._turn)
            self._traffic.weigh(-size)
            for _, number, answers in batch:
                if answers:
                    self._traffic.answered(number)

    def _send(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()


def on_signals(end: Callable[[int], None]) -> None:
    """Call `end` with an exit code when a signal asks this process to end."""
    if os.name == "nt":  # where closing standard input ends the process
        return
    loop = asyncio.get_running_loop()
    for name, code in ENDING.items():
        loop.add_signal_handler(getattr(signal, name), end, int(code))
