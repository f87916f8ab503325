"""Configuration of the store: names that cannot collide, values that cannot work, secrets that are not shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.chroma import ChromaConfig, collection_name, fingerprint, open_store
from pipeline.chroma.config import belongs
from serve.errors import ExitCode, OperatorError
from tests.chroma.support import EMBEDDER

namespaces = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,47}", fullmatch=True)
embedders = st.one_of(st.from_regex(r"[0-9a-f]{32}", fullmatch=True), st.text(max_size=40))


@given(namespaces, embedders, namespaces, embedders)
def test_two_namespaces_or_two_embedders_never_share_a_collection(one, its, other, others):
    same = (one, its) == (other, others)
    assert (collection_name(one, its) == collection_name(other, others)) == same


@given(namespaces, embedders, namespaces)
def test_a_collection_belongs_to_its_namespace_alone(one, embedder, other):
    assert belongs(collection_name(one, embedder), one)
    assert belongs(collection_name(one, embedder), other) == (one == other)


@given(namespaces, embedders)
def test_a_name_is_one_that_chroma_accepts(namespace, embedder):
    name = collection_name(namespace, embedder)
    assert 3 <= len(name) <= 512
    assert name.isascii()
    assert name[0].isalnum()
    assert name[-1].isalnum()


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"mode": "memory"}, "there is no Chroma mode `memory`"),
        ({"namespace": "My Library"}, "`My Library` is no namespace for collections"),
        ({"namespace": ""}, "`` is no namespace for collections"),
        ({"path": ""}, "the embedded Chroma store has no folder"),
        ({"mode": "server", "host": "http://localhost:8000"}, "`http://localhost:8000` is no host name for Chroma"),
        ({"mode": "cloud", "host": "api.trychroma.com"}, "Chroma Cloud needs an API key"),
    ],
)
@pytest.mark.parametrize("use", [open_store, fingerprint])
def test_a_value_that_cannot_work_is_a_usage_error_with_a_next_step(values, what, use):
    config = ChromaConfig(**{"namespace": "mine", "path": "/nowhere/chroma", **values})
    with pytest.raises(OperatorError) as caught:
        use(config, EMBEDDER)
    assert caught.value.what == what
    assert caught.value.next_step
    assert caught.value.code is ExitCode.USAGE


def test_a_token_is_not_shown():
    config = ChromaConfig(mode="server", namespace="mine", token="s3cret", headers={"x-key": "s3cret"})
    assert "s3cret" not in repr(config)
    assert "s3cret" not in config.where
