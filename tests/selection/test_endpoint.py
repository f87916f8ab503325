"""The chat endpoint as a peer on the wire: what is sent, what is followed, what is believed."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from serve.selection.chat import Address, Endpoint
from serve.selection.endpoint import EndpointSelector
from serve.selection.limits import ChoiceError
from serve.settings import ScoutSettings
from tests.selection.conftest import Chooser
from tests.selection.model_server import ModelServer, Raw, calls_of, chooses

RIGHT = "lib:csv-cleaning"


def test_a_skill_that_was_found_and_read_is_chosen(endpoint):
    chooser = endpoint(chooses(RIGHT), api_key="k-1")

    choice = chooser.choose()

    assert (choice.id, choice.selector, choice.tool_calls, choice.considered) == (RIGHT, "endpoint", 2, (RIGHT,))
    assert [item["path"] for item in chooser.server.requests] == ["/v1/chat/completions"] * 3
    assert {item["headers"]["authorization"] for item in chooser.server.requests} == {"Bearer k-1"}
    body = chooser.server.requests[-1]["body"]
    assert [item["role"] for item in body["messages"]] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["catalog_search", "catalog_read"]


def test_without_a_key_none_is_sent(endpoint):
    chooser = endpoint(chooses(RIGHT))
    chooser.choose()

    assert "authorization" not in chooser.server.requests[0]["headers"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_goes_nowhere_else(status, endpoint, serve_model):
    other = serve_model(chooses(RIGHT))
    chooser = endpoint(lambda *_: Raw(status, b"", {"location": f"{other.url}/chat/completions"}), api_key="k-1")

    choice = chooser.choose()

    assert choice.failed
    assert f"points elsewhere, which is not followed: HTTP {status}" in choice.reason
    assert other.requests == []


def test_a_busy_endpoint_is_asked_again_when_it_says(endpoint):
    answers = [Raw(429, {}, {"retry-after": "0"}), Raw(503, {}), *[None] * 9]
    play = chooses(RIGHT)
    chooser = endpoint(lambda turn, request: answers.pop(0) or play(turn, request))

    assert chooser.choose().id == RIGHT
    assert len(chooser.server.requests) == 5


def test_a_wait_that_is_too_long_is_not_waited(endpoint):
    chooser = endpoint(lambda *_: Raw(429, {"error": "tomorrow"}, {"retry-after": "86400"}))

    choice = chooser.choose(seconds=5)

    assert "does not answer: HTTP 429" in choice.reason
    assert chooser.seconds < 5


ANSWERS = {
    "no JSON": (Raw(200, b"<html>hello"), "something else than JSON: <html>hello"),
    "not UTF-8": (Raw(200, b'{"a": "\xff"}'), "something else than JSON"),
    "a list": (Raw(200, []), "something else than a JSON object"),
    "no choices": (Raw(200, {}), "without a message"),
    "empty choices": (Raw(200, {"choices": []}), "without a message"),
    "choices of another kind": (Raw(200, {"choices": {"0": 1}}), "without a message"),
    "a choice without message": (Raw(200, {"choices": [{"message": None}]}), "without a message"),
    "no content": (Raw(200, {"choices": [{"message": {"content": None}}]}), "empty"),
    "content of another kind": (Raw(200, {"choices": [{"message": {"content": 5}}]}), "empty"),
    "very much": (Raw(200, b"[" + b" " * (5 << 20) + b"]"), "more than 4 MB"),
    "a refusal with the key in it": (Raw(400, {"error": "key k-secret is wrong"}), "key [key] is wrong"),
    "terminal codes": (Raw(400, b"\x1b[31mred\x07"), "HTTP 400: [31mred"),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_an_answer_that_is_none_fails_the_choice(what, endpoint):
    answer, reason = ANSWERS[what]

    choice = endpoint(lambda *_: answer, api_key="k-secret").choose()

    assert choice.failed
    assert reason in choice.reason
    assert "k-secret" not in choice.reason
    assert choice.reason.isprintable()


def message(**fields):
    return Raw(200, {"choices": [{"message": {"role": "assistant", **fields}}]})


ODD_CALLS = {
    "arguments that are an object": [{"id": "1", "function": {"name": "catalog_read", "arguments": {"id": RIGHT}}}],
    "no ID": [{"function": {"name": "catalog_read", "arguments": json.dumps({"id": RIGHT})}}],
    "a broken one beside": [None, {"function": None}, *calls_of([("catalog_read", {"id": RIGHT})])],
    "arguments that are garbage beside": calls_of([("catalog_search", '{"query": '), ("catalog_read", {"id": RIGHT})]),
    "a very long name beside": calls_of([("x" * 100_000, {}), ("catalog_read", {"id": RIGHT})]),
}


@pytest.mark.parametrize("what", ODD_CALLS)
def test_odd_calls_are_answered_one_by_one(what, endpoint):
    verdict = json.dumps({"choice": RIGHT, "reason": "r"})
    chooser = endpoint(lambda turn, _: verdict if turn else message(tool_calls=ODD_CALLS[what]))

    choice = chooser.choose()

    assert choice.id == RIGHT
    last = chooser.server.requests[-1]["body"]["messages"]
    asked = [call["id"] for item in last for call in item.get("tool_calls") or ()]
    assert asked == [item["tool_call_id"] for item in last if item["role"] == "tool"]
    assert len(asked) == len(set(asked)) == len(ODD_CALLS[what])


def test_content_in_parts_is_read(endpoint):
    text = json.dumps({"choice": None, "reason": "r"})
    parts = [{"type": "text", "text": text[:9]}, {"type": "image_url"}, {"type": "text", "text": text[9:]}]

    assert endpoint(lambda *_: message(content=parts)).choose().reason == "r"


def test_an_endpoint_that_is_not_there_is_named(shelf):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        selector = EndpointSelector(ScoutSettings(url=url, model="m"))
        choice = Chooser(selector, shelf).choose()

    assert choice.failed
    assert "connection refused" in choice.reason
    assert url in choice.reason


def test_a_peer_that_accepts_and_says_nothing_is_left_at_the_deadline(shelf):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        chooser = Chooser(EndpointSelector(ScoutSettings(url=url, model="m")), shelf)
        choice = chooser.choose(seconds=1)

    assert choice.reason.startswith("no decision within 1 s")
    assert chooser.seconds < 1.5


def test_a_peer_that_trickles_is_left_at_the_deadline_and_its_connection_closed(shelf):
    closed = threading.Event()

    def trickle(server):
        peer, _address = server.accept()
        with peer:
            peer.recv(1 << 16)
            peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
            try:
                while not closed.wait(0.05):
                    peer.sendall(b" ")
            except OSError:
                closed.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=trickle, args=(server,))
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        chooser = Chooser(EndpointSelector(ScoutSettings(url=url, model="m")), shelf)
        choice = chooser.choose(seconds=1)
        gone = closed.wait(5)
        closed.set()
        thread.join()

    assert choice.failed
    assert chooser.seconds < 1.5
    assert gone


@pytest.mark.parametrize(
    ("url", "base", "path"),
    [
        ("http://h", "http://h/v1", "/v1/chat/completions"),
        ("http://h/", "http://h/v1", "/v1/chat/completions"),
        ("http://h:81/v1/", "http://h:81/v1", "/v1/chat/completions"),
        ("https://h/api/v4/chat/completions", "https://h/api/v4", "/api/v4/chat/completions"),
        ("http://[::1]:8/v1", "http://[::1]:8/v1", "/v1/chat/completions"),
        ("https://h/v1?api-version=2", "https://h/v1", "/v1/chat/completions?api-version=2"),
    ],
)
def test_a_base_address_gets_the_path_of_chats(url, base, path):
    address = Address(url)

    assert (address.base, address.path) == (base, path)


@pytest.mark.parametrize(
    "url", ["", "h/v1", "ftp://h/v1", "file:///etc/passwd", "http://", "http://h:port/v1", "http://u:p@h/v1"]
)
def test_what_is_no_address_of_a_model_is_refused_without_its_password(url):
    with pytest.raises(ChoiceError) as caught:
        Address(url)

    assert "u:p" not in str(caught.value)


def test_a_key_that_no_header_carries_is_refused_unseen():
    with pytest.raises(ChoiceError) as caught:
        Endpoint("http://h", "k\r\nX-Evil: 1")

    assert "Evil" not in str(caught.value)


@pytest.mark.parametrize("settings", [{}, {"url": "http://127.0.0.1:9"}, {"model": "m"}])
def test_an_endpoint_that_is_not_set_up_says_so(settings, shelf):
    choice = Chooser(EndpointSelector(ScoutSettings(**settings)), shelf).choose()

    assert choice.failed
    assert "needs a URL and the name of a model" in choice.reason


def test_no_connection_is_left_open(endpoint):
    chooser = endpoint(chooses(RIGHT))
    chooser.choose()

    assert isinstance(chooser.server, ModelServer)
    with open("/proc/self/net/tcp", encoding="ascii") as file:
        lines = [line.split() for line in file.readlines()[1:]]
    port = f":{chooser.server.port:04X}"
    assert [line for line in lines if line[2].endswith(port) and line[3] == "01"] == []
