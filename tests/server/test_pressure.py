"""What a client does wrong over standard input and output costs neither memory nor the answer of anybody."""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serve.wire import LONGEST
from tests.server.client import HELLO, SECONDS, STANDIN, RawClient, environment, until

pytestmark = pytest.mark.long

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
UNWRITABLE = 5.0  # seconds that a pipe is full until nobody is taken to read it


@pytest.fixture
def client() -> Iterator[RawClient]:
    with RawClient(STANDIN) as raw:
        raw.initialize()
        yield raw


@pytest.fixture
def unread() -> Iterator[subprocess.Popen[bytes]]:
    """A server whose output is open and read by nobody."""
    with subprocess.Popen(
        STANDIN, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        yield process
        process.kill()


def call(number: object, query: str = "thing", **more: Any) -> dict[str, Any]:
    params = {"name": "retrieve_skill", "arguments": {"query": query}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params, **more}


def lines_of(*messages: Any) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def accepted(process: subprocess.Popen[bytes], data: bytes) -> int:
    """How many bytes are taken before the pipe stays full."""
    assert process.stdin is not None
    descriptor = process.stdin.fileno()
    os.set_blocking(descriptor, False)
    taken = 0
    while taken < len(data) and select.select([], [descriptor], [], UNWRITABLE)[1]:
        taken += os.write(descriptor, data[taken : taken + 4096])
    return taken


# ------------------------------------------------------------------------------------------------- who does not read


def test_a_client_that_read_nothing_is_left_when_it_has_said_its_last(unread: subprocess.Popen[bytes]) -> None:
    assert unread.stdin is not None
    assert unread.stdout is not None
    unread.stdin.write(
        lines_of(INITIALIZE, *(call(number) for number in range(1, 41)), *(call(99, "say " + "x" * 19_000),) * 10)
    )
    unread.stdin.flush()
    pause = threading.Event()
    while int.from_bytes(fcntl.ioctl(unread.stdout, termios.FIONREAD, b"\0" * 4), "little") < 30_000:
        assert unread.poll() is None
        pause.wait(0.01)
    unread.stdin.close()

    assert unread.wait(SECONDS) == 0


def test_a_client_that_does_not_read_is_not_listened_to(unread: subprocess.Popen[bytes]) -> None:
    data = lines_of(INITIALIZE, *(call(number) for number in range(1, 10_000)))

    assert accepted(unread, data) < len(data) // 2
    assert unread.stdin is not None
    unread.stdin.close()  # behind lines that the server has never seen
    assert unread.wait(SECONDS) == 0


def test_answers_that_nobody_reads_are_not_made(unread: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Each has 400 kB, so far fewer than are asked for make up the most that is kept."""
    assert unread.stdin is not None
    unread.stdin.write(lines_of(INITIALIZE, *(call(number, f"much {tmp_path} 200000") for number in range(1, 200))))
    unread.stdin.close()

    assert unread.wait(SECONDS) == 0
    assert len(list(tmp_path.iterdir())) < 100


def test_whoever_reads_late_gets_every_answer(unread: subprocess.Popen[bytes]) -> None:
    data = lines_of(INITIALIZE, *(call(number) for number in range(1, 3000)))
    taken = accepted(unread, data)
    assert taken < len(data)
    assert unread.stdin is not None
    assert unread.stdout is not None
    os.set_blocking(unread.stdin.fileno(), True)
    rest = threading.Thread(target=lambda: os.write(unread.stdin.fileno(), data[taken:]))
    rest.start()
    ids = {json.loads(unread.stdout.readline())["id"] for _ in range(3000)}
    rest.join()

    assert ids == set(range(3000))
    unread.stdin.close()
    assert unread.wait(SECONDS) == 0


# --------------------------------------------------------------------------------------------- what is no message


def test_half_an_emoji_in_a_query_is_replaced_and_the_query_answered(client: RawClient) -> None:
    client.write(lines_of(call(77, "say cut \ud83d here")))

    assert client.answer(77)["result"]["structuredContent"]["text"] == "say cut \ufffd here"


@pytest.mark.parametrize(
    ("message", "code", "number"),
    [
        (call(1.5), -32600, 1.5),
        (call(None), -32600, None),
        (call(True), -32600, None),
        (call([7]), -32600, None),
        (call("old", jsonrpc="1.0"), -32600, "old"),
        (call("\ud800", jsonrpc="1.0"), -32600, "\ufffd"),
        (call("list", params=[]), -32600, "list"),
        ({"jsonrpc": "2.0", "id": 70}, -32600, 70),
        ([call("in a batch")], -32600, "in a batch"),
        ([], -32600, None),
        ("text", -32600, None),
    ],
    ids=str,
)
def test_a_request_that_is_none_is_answered_with_what_is_wrong(
    client: RawClient, message: Any, code: int, number: Any
) -> None:
    client.write(lines_of(message))

    answer = client.answer(number)
    assert (answer["error"]["code"], answer["id"]) == (code, number)
    assert client.ask("ping") == {}


@pytest.mark.parametrize(
    "line", [b"hello\n", b'{"jsonrpc":"2.0"\n', b"[" * 50_000 + b"\n", b'{"id":' + b"9" * 5000 + b"}\n"]
)
def test_a_line_that_is_no_json_is_answered_without_an_id(client: RawClient, line: bytes) -> None:
    client.write(line)

    answer = client.answer(None)
    assert (answer["error"]["code"], answer["id"]) == (-32700, None)


def test_each_request_of_a_batch_is_answered(client: RawClient) -> None:
    client.write(lines_of([call("a"), {"jsonrpc": "2.0", "method": "notifications/initialized"}, call("b")]))

    assert [client.answer(number)["error"]["code"] for number in ("a", "b")] == [-32600, -32600]


def test_what_needs_no_answer_gets_none(client: RawClient) -> None:
    wrong = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]}
    client.write(b"\n \r\n" + lines_of(wrong, {"jsonrpc": "2.0", "id": 5, "result": 5}))

    assert client.ask("ping") == {}
    assert len(client.kept) == 2  # the greeting's answer and this one


# ----------------------------------------------------------------------------------------------------- far too long


@pytest.mark.parametrize("first", [True, False])
def test_a_line_that_is_far_too_long_is_answered_by_its_id(client: RawClient, first: bool) -> None:
    message = call("long", "x" * LONGEST)
    if not first:
        message["id"] = message.pop("id")
    client.write(lines_of(message))

    answer = client.answer("long")
    assert answer["error"]["code"] == -32600
    assert str(LONGEST) in answer["error"]["message"]
    assert client.ask("ping") == {}


def test_a_line_without_an_end_takes_no_memory(client: RawClient) -> None:
    before = most_memory(client)
    for _ in range(100):
        client.write(b"x" * (1 << 20))
    client.write(b"\n")

    assert client.answer(None)["error"]["code"] == -32600
    assert most_memory(client) - before < 40 << 10


def most_memory(client: RawClient) -> int:
    """The most memory that the server has had, in KiB."""
    status = Path(f"/proc/{client.process.pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0])


# ----------------------------------------------------------------------------------------------------- slow neighbours


def test_a_reference_does_not_wait_for_slow_skills(client: RawClient, tmp_path: Path) -> None:
    numbers = [client.begin_call(f"wait {tmp_path / 'file'}") for _ in range(40)]
    until(tmp_path / "file.begun")

    assert not client.call("retrieve_reference", query="x").get("isError", False)
    assert not {message.get("id") for message in client.kept} & set(numbers)
    (tmp_path / "file").touch()
    assert all("result" in client.answer(number) for number in numbers)


def test_calls_that_are_called_off_make_room(client: RawClient, tmp_path: Path) -> None:
    """More of them than may be under way at the same time."""
    for _ in range(3):
        numbers = [client.begin_call(f"wait {tmp_path / 'file'}") for _ in range(200)]
        for number in numbers:
            client.notify("notifications/cancelled", {"requestId": str(number)})

    assert client.ask("ping") == {}
    assert client.call(query="thing")["structuredContent"]["found"]
