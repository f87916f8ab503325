"""Server mode against a real `chroma run`: down, killed in the middle, shared by two, and asked cheaply."""

from __future__ import annotations

import socket

import pytest

from pipeline.chroma import ChromaConfig, fingerprint, open_store, reconcile
from serve.errors import ExitCode, OperatorError, UnreachableError
from tests.chroma.support import EMBEDDER, OTHER_EMBEDDER, free_port, keys, python, rows, wanted

# Takes the fingerprint of a server's collection and tells whether that took a heavy import.
CHEAP = """
import sys
from pipeline.chroma import ChromaConfig, fingerprint
config = ChromaConfig(mode="server", namespace=sys.argv[1], port=int(sys.argv[2]))
print(fingerprint(config, sys.argv[3]), "chromadb" in sys.modules, "numpy" in sys.modules)
"""


def at(port, **more):
    return ChromaConfig(**{"mode": "server", "namespace": "mine", "port": port, "timeout": 2.0, **more})


@pytest.mark.parametrize("use", [open_store, fingerprint])
def test_a_server_that_is_down_is_unreachable_with_its_address_and_a_next_step(use):
    port = free_port()
    with pytest.raises(UnreachableError) as caught:
        use(at(port), EMBEDDER)
    assert caught.value.where == f"http://127.0.0.1:{port}"
    assert "chroma run" in caught.value.next_step
    assert caught.value.code is ExitCode.UNREACHABLE


@pytest.mark.parametrize("use", [open_store, fingerprint])
def test_a_server_that_accepts_and_says_nothing_is_unreachable_after_the_timeout(use):
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(UnreachableError, match="does not answer: timed out"),
    ):
        use(at(silent.getsockname()[1], timeout=0.2), EMBEDDER)


@pytest.mark.parametrize("use", [open_store, fingerprint])
@pytest.mark.parametrize(("code", "text"), [(500, "oops"), (200, "<html>"), (200, "[]")])
def test_another_server_at_that_address_is_recognised(answering, use, code, text):
    port, _asked = answering(code, text)
    if use is fingerprint and text == "[]":
        assert fingerprint(at(port), EMBEDDER) is None
    else:
        with pytest.raises(UnreachableError):
            use(at(port), EMBEDDER)


@pytest.mark.parametrize("code", [401, 403])
def test_refused_credentials_are_named_and_the_token_is_not_shown(answering, code):
    port, asked = answering(code, "no")
    with pytest.raises(OperatorError, match="refuses the credentials") as caught:
        fingerprint(at(port, token="s3cret", headers={"x-proxy": "p"}), EMBEDDER)
    assert "RETRIEVAL_CHROMA_TOKEN" in caught.value.next_step
    assert "s3cret" not in str(caught.value)
    assert asked[0][1]["Authorization"] == "Bearer s3cret"
    assert asked[0][1]["X-proxy"] == "p"


def test_a_redirect_does_not_carry_the_token_away(answering):
    other, asked_there = answering(200, "{}")
    port, _asked = answering(302, "", [("Location", f"http://127.0.0.1:{other}/")])
    with pytest.raises(UnreachableError, match="HTTP 302"):
        fingerprint(at(port, token="s3cret"), EMBEDDER)
    assert asked_there == []


def test_a_server_killed_between_batches_stops_the_build_and_the_next_one_finishes_it(own_server):
    ids = keys(1_200)
    batches = []

    def killed_after_the_first(done):
        batches.append(done)
        own_server.kill()

    with open_store(own_server.config(), EMBEDDER) as store:
        with pytest.raises(UnreachableError) as caught:
            reconcile(store, wanted(ids), rows, "all", advance=killed_after_the_first)
        assert caught.value.where == own_server.config().where
        assert len(batches) == 1
    own_server.start()
    assert fingerprint(own_server.config(), EMBEDDER) is None
    with open_store(own_server.config(), EMBEDDER) as store:
        assert len(store.held()) >= batches[0]
        outcome = reconcile(store, wanted(ids), rows, "all")
        assert len(outcome.plan.put) <= len(ids) - batches[0]
        assert (store.held(), store.stamp()) == (wanted(ids), "all")
        store.check()


def test_two_data_directories_on_one_server_leave_each_other_alone(server, namespace):
    one, two = (server.config(f"{namespace}-{part}") for part in "ab")
    with open_store(one, EMBEDDER) as first, open_store(two, EMBEDDER) as second:
        reconcile(first, wanted(keys(5)), rows, "one")
        reconcile(second, wanted(keys(3, 100)), rows, "two")
        reconcile(second, wanted(keys(2, 100)), rows, "three")
        assert first.held() == wanted(keys(5))
        assert second.held() == wanted(keys(2, 100))
        assert first.collections() == [first.name]
    with open_store(two, OTHER_EMBEDDER) as second:
        assert len(reconcile(second, {}, rows, "four").retired) == 1
    with open_store(one, EMBEDDER) as first:
        assert (first.held(), first.stamp()) == (wanted(keys(5)), "one")


def test_a_dropped_collection_is_written_again(server, namespace):
    config = server.config(namespace)
    with open_store(config, EMBEDDER) as store:
        reconcile(store, wanted(keys(4)), rows, "one")
        known = fingerprint(config, EMBEDDER)
        store._remove([store.name])
    assert known is not None
    assert fingerprint(config, EMBEDDER) is None
    with open_store(config, EMBEDDER) as store:
        assert len(reconcile(store, wanted(keys(4)), rows, "one").plan.put) == 4
    assert fingerprint(config, EMBEDDER) not in (None, known)


def test_a_collection_dropped_while_it_is_written_is_an_error_with_a_next_step(server, namespace):
    with (
        open_store(server.config(namespace), EMBEDDER) as store,
        open_store(server.config(namespace), EMBEDDER) as other,
    ):
        store.put(rows(keys(2)))
        other._remove([store.name])
        with pytest.raises(OperatorError, match="has gone away") as caught:
            store.put(rows(keys(2)))
        assert "retrieval build" in caught.value.next_step


def test_the_fingerprint_follows_stamp_and_rows_and_is_nothing_while_unfinished(server, namespace):
    config = server.config(namespace)
    seen = [fingerprint(config, EMBEDDER)]
    with open_store(config, EMBEDDER) as store:
        reconcile(store, wanted(keys(4)), rows, "one")
        seen.append(fingerprint(config, EMBEDDER))
        assert fingerprint(config, EMBEDDER) == seen[-1]
        store.put(rows(keys(1), "2"))
        seen.append(fingerprint(config, EMBEDDER))
        reconcile(store, wanted(keys(4)), rows, "two")
        seen.append(fingerprint(config, EMBEDDER))
        store._engine.drop(store._collection, keys(1))
        seen.append(fingerprint(config, EMBEDDER))
    assert [item is None for item in seen] == [True, False, True, False, False]
    assert len(set(seen)) == 4


def test_the_fingerprint_of_a_server_costs_no_heavy_import(server, namespace):
    with open_store(server.config(namespace), EMBEDDER) as store:
        store.set_stamp("one")
    process = python(CHEAP, namespace, str(server.port), EMBEDDER)
    said, errors = process.communicate(timeout=60)
    assert errors == ""
    assert said.split()[0].endswith(":0:one")
    assert said.split()[1:] == ["False", "False"]


def test_a_tenant_or_database_that_does_not_exist_is_an_error_with_a_next_step(server, namespace):
    for more in ({"tenant": "nobody"}, {"database": "nothing"}):
        with pytest.raises(OperatorError, match="has no database") as caught:
            open_store(server.config(namespace, **more), EMBEDDER)
        assert next(iter(more.values())) in caught.value.what
        assert caught.value.next_step
        assert caught.value.where == f"http://127.0.0.1:{server.port}"
