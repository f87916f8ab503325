"""The embedder of queries: opened once, checked against the index, and loaded in the background where nobody may wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from serve.contract import EmbedderIdentity
from serve.embedder import Embedder, EmbedderConfig, identity, open_embedder, require_same_space
from serve.errors import EmbedderError, OperatorError

_AGAIN = 30.0  # seconds after which a model that could not be loaded is tried again
_PROBE = "a query"  # embedding it makes a model load itself
_AT_ONCE = 2  # queries in a model: each takes memory of its own, and the model already uses several cores for one


class QueryEmbedder:
    """Callable from many threads at once.

    wait: whether a query waits until the model is loaded. Without it the first query is told that the model is not there
    yet, and `begin` loads it beside the answers. An endpoint has nothing to load, so nobody ever waits for it.
    """

    def __init__(self, config: EmbedderConfig, *, wait: bool = True) -> None:
        self.config = config
        self.wait = wait
        self._lock = threading.Lock()
        self._identity: EmbedderIdentity | None = None
        self._embedder: Embedder | None = None
        self._ready = config.kind == "endpoint"
        self._turn = threading.BoundedSemaphore(_AT_ONCE if config.kind != "endpoint" else 64)
        self._loader: threading.Thread | None = None
        self._failure: OperatorError | None = None
        self._failed_at = 0.0

    def require(self, index: EmbedderIdentity) -> None:
        """Raise ContractError when the index was made by another embedder. Loads nothing."""
        if self._identity is None:
            self._identity = identity(self.config)
        require_same_space(index, self._identity)

    def vectors(self, index: EmbedderIdentity, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The (n, dimension) vectors of texts. Raises OperatorError with the reason why there are none."""
        self.require(index)
        if not self._ready and not self.wait:
            self.begin(index.dimension)
            raise self._failure or EmbedderError("the model is still being loaded", next_step="ask again in a moment")
        model = self._open(index.dimension)
        require_same_space(index, model.identity)
        with self._turn:
            found = np.stack([model.query(text) for text in texts])
        self._ready = True
        return found

    def begin(self, dimension: int) -> None:
        """Load the model in a thread of its own unless it is loaded, being loaded, or has just failed to load."""
        with self._lock:
            if self._ready or self._loader is not None:
                return
            if self._failure is not None and time.monotonic() - self._failed_at < _AGAIN:
                return
            self._loader = threading.Thread(target=self._load, args=(dimension,), name="model", daemon=True)
            self._loader.start()

    def close(self) -> None:
        """Let go of the model and its connections."""
        with self._lock:
            if self._embedder is not None:
                self._embedder.close()

    def _load(self, dimension: int) -> None:
        failure: OperatorError | None = None
        try:
            self._open(dimension).query(_PROBE)
        except OperatorError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - a library's own fault must not leave everybody waiting for ever
            failure = EmbedderError(
                f"the model cannot be loaded ({type(error).__name__}: {error})", next_step="run `retrieval doctor`"
            )
        with self._lock:
            self._failure, self._failed_at = failure, time.monotonic()
            self._ready = self._ready or failure is None
            self._loader = None

    def _open(self, dimension: int) -> Embedder:
        """The embedder. Told the index's dimension, an endpoint is not asked for it before the first query."""
        embedder = self._embedder
        if embedder is None:
            with self._lock:
                if self._embedder is None:
                    told = None if self.config.kind == "builtin" else dimension or None
                    config = msgspec.structs.replace(self.config, dimension=self.config.dimension or told)
                    self._embedder = open_embedder(config)
                embedder = self._embedder
        return embedder
