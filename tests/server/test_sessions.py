"""Over HTTP the sessions that clients leave behind take no places of those that come."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.server.client import HELLO, STANDIN
from tests.server.web import Web

pytestmark = pytest.mark.long

INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
PING = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
MANY = 150  # more than are kept, and more than can be open at all


@pytest.fixture
def web() -> Iterator[Web]:
    with Web(STANDIN) as running:
        yield running


def opened(web: Web) -> str:
    with web.send("POST", {}, body=INITIALIZE) as response:
        assert response.status == 200, response.read()
        response.read()
        return str(response.headers["mcp-session-id"])


def used(web: Web, session: str) -> int:
    return web.post({"Mcp-Session-Id": session}, body=PING)[0]


def test_a_new_client_is_let_in_however_many_went_without_saying_so(web: Web) -> None:
    first, *_, last = [opened(web) for _ in range(MANY)]

    assert used(web, last) == 200
    assert used(web, first) == 404


def test_a_session_that_is_used_outlives_those_that_are_not(web: Web) -> None:
    kept = opened(web)
    for _ in range(MANY):
        opened(web)
        assert used(web, kept) == 200


def test_a_session_whose_client_listens_is_not_ended(web: Web) -> None:
    heard = opened(web)
    with web.send("GET", {"Mcp-Session-Id": heard}) as stream:
        assert stream.status == 200
        for _ in range(MANY):
            opened(web)

        assert used(web, heard) == 200


def test_sessions_that_were_ended_by_their_clients_push_out_nobody(web: Web) -> None:
    kept = opened(web)
    for _ in range(MANY):
        with web.send("DELETE", {"Mcp-Session-Id": opened(web)}) as response:
            assert response.status == 200

    assert used(web, kept) == 200
