"""Over HTTP nobody is let in but a client of this machine that knows the token."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest

from tests.server.client import HELLO, SECONDS, SERVE, STANDIN, environment
from tests.server.web import TOKEN, Web
from tests.support import ROOT

pytestmark = pytest.mark.long

INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with Web(STANDIN) as running:
        yield running


def test_whoever_knows_the_token_is_answered(web: Web) -> None:
    status, text = web.post({}, body=INITIALIZE)

    assert status == 200
    assert '"name":"retrieval"' in text


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
    ],
)
def test_without_the_token_nobody_is_let_in(web: Web, given: str | None) -> None:
    status, text = web.post({"Authorization": given}, body=INITIALIZE)

    assert (status, "RETRIEVAL_HTTP_TOKEN" in text) == (401, True)
    assert TOKEN not in text


@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcp", "/.well-known/oauth-protected-resource", "/x"])
def test_no_path_is_open_without_the_token(web: Web, path: str) -> None:
    assert web.post({"Authorization": None}, path)[0] == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}.evil",
        "",
        None,
    ],
)
def test_a_name_that_was_made_to_lead_here_is_refused(web: Web, host: str | None) -> None:
    """A page can have its own name resolved to this machine; the request then carries that name."""
    status, _ = web.post({"Host": None if host is None else host.format(port=web.port)}, body=INITIALIZE)

    assert status == 421


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LocalHost:{port}", "[::1]:{port}"])
def test_this_machine_may_be_called_by_its_own_names(web: Web, host: str) -> None:
    assert web.post({"Host": host.format(port=web.port), "Authorization": None})[0] == 401


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "http://127.0.0.1:{port}.evil.example",
        "null",
        "http://localhost:1",
    ],
)
def test_a_page_of_another_origin_is_refused_even_with_the_token(web: Web, origin: str) -> None:
    assert web.post({"Origin": origin.format(port=web.port)}, body=INITIALIZE)[0] == 403


def test_an_origin_of_its_own_is_let_in(web: Web) -> None:
    assert web.post({"Origin": f"http://localhost:{web.port}"}, body=INITIALIZE)[0] == 200


def test_a_request_that_is_far_too_large_is_refused_before_it_is_read(web: Web) -> None:
    assert web.post({"Content-Length": str(1 << 30)}, body=b"{")[0] == 413


def test_only_this_machine_is_listened_to(web: Web) -> None:
    with socket.socket() as outside:
        outside.settimeout(SECONDS)
        assert outside.connect_ex((_own_address(), web.port)) != 0


def _own_address() -> str:
    """An address of this machine that is not a loopback one, or another loopback one where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.2"
        address = str(probe.getsockname()[0])
    return "127.0.0.2" if address == "127.0.0.1" else address


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_with_its_code(number: int, code: int) -> None:
    with Web(STANDIN) as web:
        web.post({}, body=INITIALIZE)
        web.process.send_signal(number)
        assert web.process.wait(SECONDS) == code


def refused(*options: str, **variables: str) -> tuple[int, str]:
    done = subprocess.run(
        [*SERVE, *options],
        cwd=ROOT.parent,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("token", ["", "short"])
def test_without_a_token_worth_the_name_nothing_is_served(token: str) -> None:
    code, text = refused("--http", "0", RETRIEVAL_HTTP_TOKEN=token)

    assert code == 2
    assert text.startswith(
        "error: serving over HTTP needs a token of at least 16 characters\n  at RETRIEVAL_HTTP_TOKEN\n"
    )


@pytest.mark.parametrize(
    "place", ["0.0.0.0:0", "192.0.2.1:80", "[::]:0", "example.org:80", ":80", "localhost:x", "70000", "-1", "x"]
)
def test_no_other_address_can_be_served(place: str) -> None:
    code, text = refused("--http", place, RETRIEVAL_HTTP_TOKEN=TOKEN)

    assert (code, text.splitlines()[1]) == (2, "  at --http")


def test_a_port_in_use_is_one_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, text = refused("--http", str(port), RETRIEVAL_HTTP_TOKEN=TOKEN)

    assert (code, text) == (
        1,
        f"error: the port cannot be served: address already in use\n  at 127.0.0.1:{port}\n  next: choose another port\n",
    )
