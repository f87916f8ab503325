from __future__ import annotations

import base64
import json
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from serve.embedder import EmbedderConfig, identity, open_embedder
from serve.embedder.endpoint import EndpointEmbedder
from serve.errors import EmbedderError, ExitCode, UnreachableError
from tests.embedder.loopback import good_answer, good_rows, good_vector

KEY = "sk-test-0123456789"
pytestmark = pytest.mark.requirement("R048")


@pytest.fixture
def waits():
    """The seconds that the embedder would have slept."""
    return []


@pytest.fixture
def opened(server, waits):
    """Opens embedders on the server and closes them when the test ends. The dimension is given, so nothing is asked yet."""
    embedders = []

    def open_one(**settings):
        config = EmbedderConfig(
            **{
                "kind": "endpoint",
                "model": "m",
                "url": server.url,
                "dimension": 8,
                "batch": 4,
                "retries": 2,
                **settings,
            }
        )
        embedders.append(EndpointEmbedder(config, sleep=waits.append))
        return embedders[-1]

    yield open_one
    for embedder in embedders:
        embedder.close()


def every(embedder, texts):
    rows = np.full((len(texts), 8), np.nan, dtype=np.float32)
    for indices, vectors in embedder.batches(texts):
        rows[indices] = vectors
    return rows


def right(texts):
    rows = np.array([good_vector(text) for text in texts])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def failure(embedder, kind=EmbedderError):
    with pytest.raises(kind) as caught:
        embedder.query("text")
    error = caught.value
    assert error.where == embedder._transport.shown
    assert error.next_step
    return error


TEXTS = [f"{'long ' * (at % 5)}text {at}" for at in range(11)]


def test_passages_come_back_as_unit_vectors_in_batches(server, opened):
    assert np.array_equal(every(opened(), TEXTS), right(TEXTS))
    assert [len(body["input"]) for _, _, body in server.requests] == [4, 4, 3]
    assert {body["model"] for _, _, body in server.requests} == {"m"}


def test_batches_hold_texts_of_like_length(server, opened):
    every(opened(), TEXTS)
    assert [len(text) for text in server.texts()] == sorted(len(text) for text in TEXTS)


def test_requests_share_one_connection(server, opened):
    embedder = opened()
    every(embedder, TEXTS)
    embedder.query("text")
    assert (len(server.requests), server.connections) == (4, 1)


def test_the_dimension_is_asked_for_when_it_is_not_given(server):
    config = EmbedderConfig(kind="endpoint", model="m", url=server.url)
    assert identity(config).dimension == 0
    embedder = open_embedder(config)
    assert embedder.identity.dimension == 8
    assert len(server.requests) == 1
    embedder.close()


def test_prefixes_stand_before_the_texts(server, opened):
    embedder = opened(query_prefix="query: ", passage_prefix="passage: ")
    every(embedder, ["a"])
    embedder.query("b")
    assert server.texts() == ["passage: a", "query: b"]


@pytest.mark.parametrize(
    ("tail", "path"),
    [
        ("/v1", "/v1/embeddings"),
        ("/v1/", "/v1/embeddings"),
        ("/v1/embeddings", "/v1/embeddings"),
        ("", "/v1/embeddings"),
        ("/", "/v1/embeddings"),
        ("/api/openai/v1?version=2", "/api/openai/v1/embeddings?version=2"),
        ("/with space", "/with%20space/embeddings"),
    ],
)
def test_the_url_may_be_the_base_or_the_full_address(server, opened, tail, path):
    opened(url=server.url.removesuffix("/v1") + tail).query("text")
    assert server.requests[0][0] == path


@pytest.mark.parametrize(
    "url", ["localhost:8080", "ftp://host/v1", "http://", "http://host:port/v1", "http://[::1/v1", "://", "no url"]
)
def test_what_is_no_http_address_is_refused_at_once(url):
    with pytest.raises(EmbedderError, match="no HTTP address") as caught:
        open_embedder(EmbedderConfig(kind="endpoint", model="m", url=url))
    assert caught.value.code is ExitCode.USAGE


@pytest.mark.requirement("R417")
def test_the_key_is_sent_as_a_bearer_token(server, opened):
    opened(api_key=f" {KEY}\n").query("text")
    assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"


def test_without_a_key_none_is_sent(server, opened):
    opened().query("text")
    assert "Authorization" not in server.requests[0][1]


def test_a_user_in_the_url_is_sent_and_not_shown(server, opened):
    embedder = opened(url=server.url.replace("http://", "http://me:pass%20word@") + "?token=hush")
    embedder.query("text")
    sent = server.requests[0][1]["Authorization"].removeprefix("Basic ")
    assert base64.b64decode(sent) == b"me:pass word"
    server.script = [(400, b"who is me:pass word? not 'pass word'", {})]
    shown = str(failure(embedder))
    assert server.url in shown
    assert [part for part in ("me:", "pass", "word@", "hush") if part in shown] == []


def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(opened):
    for key in (f"{KEY}\nX-Evil: 1", f"{KEY}é"):
        with pytest.raises(EmbedderError, match="no HTTP header can carry") as caught:
            opened(api_key=key)
        assert KEY not in str(caught.value)


def test_a_refused_key_is_an_error_that_does_not_show_it(server, opened):
    server.script = [(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, {})]
    error = failure(opened(api_key=KEY))
    assert "refuses the API key: HTTP 401" in error.what
    assert "RETRIEVAL_EMBEDDING_API_KEY" in error.next_step
    shown = [str(error), repr(error), json.dumps(error.as_dict()), str(error.__cause__)]
    assert not [text for text in shown if KEY in text]
    assert len(server.requests) == 1


def test_a_request_that_is_refused_is_not_repeated_and_shows_the_servers_words(server, opened):
    server.script = [(404, {"error": "model \x1b[31m m \n not found"}, {})]
    error = failure(opened())
    assert error.code is ExitCode.FAILED
    assert "HTTP 404" in error.what
    assert "not found" in error.what
    assert error.what.isprintable()
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server, opened):
    server.script = [(308, b"", {"Location": "http://elsewhere/v1"})]
    assert "points elsewhere: HTTP 308" in failure(opened()).what


def test_a_busy_server_is_asked_again_after_the_time_it_names(server, opened, waits):
    server.script = [(429, b"slow down", {"Retry-After": "7"})]
    assert np.array_equal(every(opened(), ["text"]), right(["text"]))
    assert waits == [7.0]
    assert server.texts() == ["text", "text"]


@pytest.mark.parametrize(
    ("asked", "waited"), [("9" * 30, 60.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.5), ("-3", 0.5), ("", 0.5)]
)
def test_the_time_a_server_names_is_bounded(server, opened, waits, asked, waited):
    server.script = [(503, b"", {"Retry-After": asked})]
    every(opened(), ["text"])
    assert waits == [waited]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
@pytest.mark.requirement("R417")
def test_a_server_that_keeps_failing_is_unreachable_after_bounded_tries(server, opened, waits, status):
    server.script = [(status, b"out of order", {})] * 9
    embedder = opened()
    with pytest.raises(UnreachableError) as caught:
        every(embedder, ["text"])
    assert caught.value.code is ExitCode.UNREACHABLE
    assert f"HTTP {status}: out of order (3 tries)" in caught.value.what
    assert caught.value.where == f"{server.url}"
    assert len(server.requests) == 3
    assert waits == [0.5, 1.0]


def test_a_query_is_tried_twice_and_does_not_wait_long(server, opened, waits):
    server.script = [(503, b"", {"Retry-After": "30"})] * 9
    failure(opened(retries=7), UnreachableError)
    assert len(server.requests) == 2
    assert waits == [0.5]


def test_batches_before_a_failure_are_kept(server, opened):
    server.script = [(200, good_answer, {}), *[(500, b"", {})] * 3]
    batches = opened().batches(TEXTS)
    indices, vectors = next(batches)
    assert np.array_equal(vectors, right([TEXTS[at] for at in indices]))
    with pytest.raises(UnreachableError):
        next(batches)


@pytest.mark.requirement("R417")
def test_no_answer_within_the_timeout_is_unreachable(server, opened):
    server.script = [lambda _: server.stop.wait(20)] * 9
    error = failure(opened(timeout=0.1, retries=0), UnreachableError)
    assert "no answer within 0.1 s (one try)" in error.what


def test_an_answer_that_trickles_is_cut_off_at_the_timeout(server, opened):
    def trickle(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        while not server.stop.wait(0.02):
            try:
                handler.wfile.write(b" ")
            except OSError:
                return

    server.script = [trickle]
    error = failure(opened(timeout=0.3, retries=0), UnreachableError)
    assert "no answer within 0.3 s" in error.what


def test_an_answer_that_breaks_off_is_asked_for_again(server, opened):
    def half(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"data": [')
        handler.close_connection = True

    server.script = [half]
    assert np.array_equal(opened().query("text"), right(["text"])[0])
    assert len(server.requests) == 2


def test_a_connection_that_the_server_has_closed_is_replaced_without_a_wait(server, opened, waits):
    def answer_and_hang_up(handler):
        content = json.dumps(good_answer(["text"])).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        handler.close_connection = True

    embedder = opened(retries=0)
    server.script = [answer_and_hang_up]
    embedder.query("text")
    assert np.array_equal(embedder.query("text"), right(["text"])[0])
    assert (server.connections, waits) == (2, [])


def test_a_refused_connection_is_unreachable():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        waits = []
        with pytest.raises(UnreachableError) as caught:
            EndpointEmbedder(EmbedderConfig(kind="endpoint", model="m", url=url, retries=3), sleep=waits.append)
    assert caught.value.what == "the embedding endpoint does not answer: connection refused (4 tries)"
    assert caught.value.where == url
    assert waits == [0.5, 1.0, 2.0]


def test_a_server_that_speaks_no_http_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:

        def greet():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-something\r\n\r\n")

        pool.submit(greet)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        with pytest.raises(UnreachableError, match="does not answer"):
            open_embedder(EmbedderConfig(kind="endpoint", model="m", url=url, retries=0))


def test_rows_in_any_order_are_put_in_theirs(server, opened):
    server.script = [(200, lambda texts: {"data": good_rows(texts)[::-1]}, {})]
    assert np.array_equal(every(opened(batch=16), TEXTS), right(TEXTS))


def test_rows_without_numbers_are_taken_as_they_come(server, opened):
    server.script = [(200, lambda texts: {"data": [{"embedding": good_vector(text)} for text in texts]}, {})]
    assert np.array_equal(every(opened(batch=16), TEXTS), right(TEXTS))


def rows_with(change):
    def content(texts):
        rows = good_rows(texts)
        change(rows)
        return {"data": rows}

    return content


def set_last(**fields):
    return rows_with(lambda rows: rows[-1].update(fields))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (rows_with(lambda rows: rows.pop()), "gave 3 vectors for 4 texts"),
        (rows_with(lambda rows: rows.append(rows[0])), "gave 5 vectors for 4 texts"),
        (rows_with(lambda rows: rows.__delitem__(slice(2, 4))), "gave 2 vectors for 4 texts"),
        (set_last(embedding=None), "answer of another form"),
        (set_last(embedding=[]), "vectors of different lengths"),
        (set_last(embedding=[1.0] * 7), "vectors of different lengths"),
        (rows_with(lambda rows: [row.update(embedding=[1.0] * 9) for row in rows]), "9 numbers where 8 are expected"),
        (set_last(embedding=[0] * 8), "a vector of zeros"),
        (set_last(embedding=["1"] * 8), "answer of another form"),
        (set_last(embedding=[1e308] * 8), "not finite"),
        (set_last(index=0), "numbered its vectors wrongly"),
        (set_last(index=-1), "numbered its vectors wrongly"),
        (set_last(index=None), "numbered its vectors wrongly"),
        (lambda texts: {"data": []}, "gave 0 vectors for 4 texts"),
        (lambda texts: {"error": "no"}, "answer of another form"),
        (lambda texts: [], "answer of another form"),
        (b"", "answer of another form"),
        (b"<html>sign in</html>", "answer of another form"),
        (b'{"data": [{"embedding": [NaN]}]}', "answer of another form"),
        (b'{"data": [{"embedding": [1e999]}]}', "answer of another form|gave 1 vectors"),
        (b'{"data": [' * 100_000, "answer of another form"),
        (b"\xff\xfe{}", "answer of another form"),
    ],
)
def test_a_wrong_answer_is_an_error_and_no_vector(server, opened, content, says):
    server.script = [(200, content, {})]
    given = []
    with pytest.raises(EmbedderError, match=says) as caught:
        given.extend(opened().batches(["a", "b", "c", "d"]))
    assert given == []
    assert caught.value.where == server.url
    assert caught.value.next_step
    assert len(server.requests) == 1


def test_a_server_whose_vectors_change_their_length_is_refused(server, waits):
    config = EmbedderConfig(kind="endpoint", model="m", url=server.url, batch=4)
    embedder = EndpointEmbedder(config, sleep=waits.append)
    server.script = [(200, lambda texts: {"data": good_rows(texts, 16)}, {})]
    with pytest.raises(EmbedderError, match="16 numbers where 8 are expected"):
        list(embedder.batches(["a"]))
    embedder.close()


def test_several_threads_may_ask_at_once(server, opened):
    embedder = opened()
    with ThreadPoolExecutor(5) as pool:
        rows = list(pool.map(embedder.query, TEXTS * 3))
    assert np.array_equal(np.stack(rows), np.tile(right(TEXTS), (3, 1)))
    assert server.connections <= 5


def test_an_embedder_that_was_closed_opens_a_connection_again(server, opened):
    embedder = opened()
    embedder.query("text")
    embedder.close()
    embedder.query("text")
    assert server.connections == 2


def test_no_texts_ask_nothing(server, opened):
    assert list(opened().batches([])) == []
    assert server.requests == []


def test_text_of_any_kind_arrives_as_it_is(server, opened):
    texts = ["", 'quote " and \\ and \n', "\x00", "東京", "half \ud83d pair", "x" * 10_000]
    every(opened(batch=16), texts)
    assert sorted(server.texts()) == sorted([*texts[:4], "half ? pair", "x" * 4096])
