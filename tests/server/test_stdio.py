"""The server over standard input and output, as a harness starts it: what it writes, when it ends, what it leaves behind."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import threading
from pathlib import Path

import pytest

from serve import tools
from tests.server.client import HELLO, SECONDS, SERVE, STANDIN, RawClient, environment, text_of, until


@pytest.fixture
def client():
    with RawClient(STANDIN) as raw:
        raw.initialize()
        yield raw


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be asked for its code does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in {"Z", "X"}


# ---------------------------------------------------------------------------------------------------------------- the end


def test_a_server_whose_client_closes_its_end_exits_with_0() -> None:
    with RawClient(SERVE) as raw:
        raw.initialize()
        assert raw.end() == 0


def test_a_server_that_was_never_asked_anything_exits_with_0() -> None:
    with RawClient(SERVE) as raw:
        assert raw.end() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 0)])
def test_a_signal_ends_the_server_while_its_input_is_still_open(number: int, code: int) -> None:
    with RawClient(STANDIN) as raw:
        raw.initialize()
        raw.process.send_signal(number)
        assert raw.wait() == code
        assert b"Traceback" not in b"".join(raw.errors)


def test_without_standard_input_or_output_the_reason_is_said() -> None:
    for closed in ("<&-", ">&-"):
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *SERVE],
            env=environment(),
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode == 1
        assert done.stderr.startswith(b"error: standard input or output is closed")


def test_a_server_without_standard_error_serves_all_the_same() -> None:
    with RawClient(["sh", "-c", 'exec "$@" 2>&-', "sh", *STANDIN]) as raw:
        raw.initialize()
        assert raw.call(query="fail")["isError"]
        assert not raw.call(query="print").get("isError", False)
        assert raw.end() == 0

    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in raw.lines)


@pytest.mark.parametrize("way", ["end", "signal"])
def test_no_child_is_left_behind(client: RawClient, tmp_path: Path, way: str) -> None:
    client.call(query=f"child {tmp_path / 'pid'}")
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert alive(pid)

    if way == "signal":
        client.process.terminate()
    assert client.end() == 0
    assert not alive(pid)


def test_requests_that_are_piped_in_are_answered_before_the_end() -> None:
    """`printf ... | start.sh` closes standard input before the first answer."""
    messages = [
        {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "retrieve_skill", "arguments": {"query": "x"}},
        },
        {"jsonrpc": "2.0", "id": 3, "method": "ping"},
    ]
    text = "".join(json.dumps(message) + "\n" for message in messages)
    done = subprocess.run(
        STANDIN, env=environment(), input=text.encode(), capture_output=True, check=False, timeout=SECONDS
    )

    assert done.returncode == 0
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert answers.keys() == {"a", 1, 2, 3}
    assert all("result" in answer for answer in answers.values())


def test_a_client_that_does_not_read_keeps_no_server_from_ending() -> None:
    """Its pipe is full, so the server is stuck in writing when the signal comes."""
    with subprocess.Popen(
        STANDIN, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}]
        lines += [{"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(1, 100)]
        process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        process.stdin.flush()
        assert process.stdout is not None
        pause = threading.Event()
        while struct.unpack("i", fcntl.ioctl(process.stdout, termios.FIONREAD, b"\0" * 4))[0] < 60_000:
            assert process.poll() is None
            pause.wait(0.01)
        process.terminate()
        assert process.wait(SECONDS) == 0


def test_a_call_under_way_is_told_when_the_client_goes(client: RawClient, tmp_path: Path) -> None:
    client.begin_call(f"wait {tmp_path / 'file'}")
    until(tmp_path / "file.begun")

    assert client.end() == 0
    assert (tmp_path / "file.cancelled").exists()


def test_a_client_that_is_gone_before_its_answer_is_no_failure(tmp_path: Path) -> None:
    """The answer meets a closed pipe while standard input is still open."""
    reading, writing = os.pipe()
    with subprocess.Popen(
        STANDIN, env=environment(), stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.PIPE
    ) as process:
        os.close(writing)
        os.close(reading)
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode() + b"\n"
        )
        process.stdin.flush()
        errors = process.stderr.read()
        assert process.wait(SECONDS) == 0
    assert b"Traceback" not in errors


# ------------------------------------------------------------------------------------------------------- standard output


def test_standard_output_carries_the_protocol_alone(client: RawClient) -> None:
    result = client.call(query="print")
    assert not result.get("isError", False)
    assert client.end() == 0

    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in client.lines)
    errors = b"".join(client.errors)
    assert all(text in errors for text in (b"a stray print", b"a stray write", b"a stray child"))


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello\n",
        b"\n",
        b"{}\n",
        b"[1, 2\n",
        b"\xff\xfe\x00\n",
        b'{"jsonrpc": "2.0", "id": 7}\n',
        b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}\n',
        b'{"jsonrpc": "2.0", "method": "no/such/notification"}\n',
        b"x" * 300_000 + b"\n",
        b"[" * 50_000 + b"\n",
    ],
    ids=lambda data: repr(data[:24]),
)
def test_garbage_is_survived_and_never_echoed(client: RawClient, garbage: bytes) -> None:
    client.write(garbage)

    assert client.ask("ping") == {}
    assert client.end() == 0
    assert {line for line in client.lines if json.loads(line).get("jsonrpc") != "2.0"} == set()


def test_an_unknown_method_is_a_protocol_error(client: RawClient) -> None:
    assert client.answer(client.send("resources/list"))["error"]["code"] == -32601
    assert client.answer(client.send("no/such/method"))["error"]["code"] == -32601


def test_bytes_that_are_no_text_do_not_break_the_connection(client: RawClient) -> None:
    """Names of files may hold such bytes, and JSON cannot."""
    result = client.call(query="odd")

    assert result["structuredContent"]["text"] == "bytes that are no text: ?\n"
    assert client.ask("ping") == {}


# ------------------------------------------------------------------------------------------------------- calls at once


def test_a_ping_is_answered_while_a_call_is_under_way(client: RawClient, tmp_path: Path) -> None:
    number = client.begin_call(f"wait {tmp_path / 'file'}")
    until(tmp_path / "file.begun")

    assert client.ask("ping") == {}
    assert [message["id"] for message in client.kept if message.get("id") == number] == []
    (tmp_path / "file").touch()
    assert client.answer(number)["result"]["structuredContent"]["found"]


def test_ten_calls_run_at_once(client: RawClient, tmp_path: Path) -> None:
    numbers = [client.begin_call(f"meet {tmp_path} 10") for _ in range(10)]

    results = [client.answer(number)["result"] for number in numbers]
    assert [text_of(result) for result in results if result.get("isError")] == []


def test_a_hundred_calls_are_all_answered(client: RawClient) -> None:
    numbers = [client.begin_call("thing") for _ in range(100)]

    assert all(client.answer(number)["result"]["structuredContent"]["found"] for number in numbers)


def test_a_call_that_is_cancelled_ends_and_is_not_answered(client: RawClient, tmp_path: Path) -> None:
    number = client.begin_call(f"wait {tmp_path / 'file'}")
    until(tmp_path / "file.begun")
    client.notify("notifications/cancelled", {"requestId": number, "reason": "enough"})
    until(tmp_path / "file.cancelled")

    assert client.ask("ping") == {}
    assert [message for message in client.kept if message.get("id") == number] == []


# ------------------------------------------------------------------------------------------------------------- progress


def test_progress_is_reported_in_order_and_never_backwards(client: RawClient) -> None:
    number = client.begin_call("progress", progressToken="mine")
    client.answer(number)

    reports = [message["params"] for message in client.kept if message.get("method") == "notifications/progress"]
    assert [(item["progressToken"], item["progress"], item["total"], item["message"]) for item in reports] == [
        ("mine", 0.0, 1.0, "at 0.0"),
        ("mine", 0.25, 1.0, "at 0.25"),
        ("mine", 0.75, 1.0, "at 0.75"),
        ("mine", 1.0, 1.0, "at 1.0"),
    ]
    assert client.kept[-1]["id"] == number


def test_progress_is_not_sent_to_who_did_not_ask(client: RawClient) -> None:
    client.call(query="progress")

    assert [message for message in client.kept if "method" in message] == []


# -------------------------------------------------------------------------------------------------------- faults and errors


def test_a_fault_in_a_tool_is_an_answer_with_its_next_step(client: RawClient) -> None:
    result = client.call(query="fail")

    assert result["isError"]
    assert text_of(result) == (
        "error: a fault in Retrieval itself: RuntimeError: something broke\n"
        "  next: run `retrieval doctor`; report the fault if that finds nothing"
    )
    assert client.ask("ping") == {}


@pytest.mark.parametrize(
    ("name", "arguments", "what"),
    [
        ("retrieve_skill", {}, "the argument `query` is missing"),
        ("retrieve_skill", {"query": None}, "the argument `query` is missing"),
        ("retrieve_skill", {"query": " \n"}, "the argument `query` is empty"),
        ("retrieve_skill", {"query": 5}, "the argument `query` is 5, not text"),
        ("retrieve_skill", {"query": ["a"]}, "the argument `query` is ['a'], not text"),
        ("retrieve_skill", {"query": "x" * 20_001}, "the argument `query` has 20001 characters"),
        ("retrieve_skill", {"query": "x", "limit": 3}, 'there is no argument "limit"'),
        ("retrieve_reference", {"query": "x", "limit": 0}, "the argument `limit` is 0"),
        ("retrieve_reference", {"query": "x", "limit": 21}, "the argument `limit` is 21"),
        ("retrieve_reference", {"query": "x", "limit": 1.5}, "the argument `limit` is 1.5"),
        ("retrieve_reference", {"query": "x", "limit": "3"}, 'the argument `limit` is "3"'),
        ("retrieve_reference", {"query": "x", "limit": True}, "the argument `limit` is True"),
        ("retrieve_reference", {"query": "x", "max_chars": 199}, "the argument `max_chars` is 199"),
        (
            "retrieve_reference",
            {"query": "x", "max_chars": 10**30},
            "the argument `max_chars` is 1000000000000000000000000000000",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused_and_never_bent(
    client: RawClient, name: str, arguments, what: str
) -> None:
    result = client.call(name, **arguments)

    assert result["isError"]
    assert text_of(result).startswith(f"error: {what}\n  next: ")


def test_an_unknown_tool_is_named_with_the_known_ones(client: RawClient) -> None:
    error = client.answer(client.send("tools/call", {"name": "sync", "arguments": {}}))["error"]

    assert error["code"] == -32602
    assert "retrieve_skill or retrieve_reference" in error["message"]


# ----------------------------------------------------------------------------------------------------------- first contact


@pytest.mark.requirement("R103")
def test_the_server_shows_exactly_two_tools(client: RawClient) -> None:
    listed = client.ask("tools/list")["tools"]

    assert [tool["name"] for tool in listed] == ["retrieve_skill", "retrieve_reference"]
    assert all(tool["description"] and tool["inputSchema"] and tool["outputSchema"] for tool in listed)


def test_the_greeting_says_who_answers_and_how_to_use_it() -> None:
    with RawClient(SERVE) as raw:
        hello = raw.initialize()

    assert hello["serverInfo"]["name"] == "retrieval"
    assert hello["serverInfo"]["version"]
    assert hello["instructions"] == tools.INSTRUCTIONS
    assert "tools" in hello["capabilities"]
    assert hello["capabilities"].keys() & {"prompts", "resources", "logging", "completions"} == set()
