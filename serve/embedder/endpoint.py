"""Any OpenAI-compatible server: texts go to its `/v1/embeddings`, and every answer is checked before it is believed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from serve.embedder import identity
from serve.embedder.transport import Transport
from serve.embedder.vectors import bounded, unit_rows
from serve.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from serve.contract import EmbedderIdentity
    from serve.embedder import EmbedderConfig

# Somebody waits for a query's answer, and without this lane there is one all the same: it is tried twice, not longer.
_QUERY_TIMEOUT = 5.0  # seconds
_QUERY_RETRIES = 1
_QUERY_WAIT = 0.5


class _Row(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Row]


_decoder = msgspec.json.Decoder(_Answer)


class EndpointEmbedder:
    """Asks the server for its dimension when the configuration does not give it, and never for another model.

    sleep: waits between two tries, in seconds.
    """

    def __init__(self, config: EmbedderConfig, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._config = config
        self._transport = Transport(config.url, api_key=config.api_key, sleep=sleep)
        self._dimension = config.dimension
        if self._dimension is None:
            try:
                self._dimension = self._ask(["dimension"], timeout=config.timeout, retries=config.retries).shape[1]
            except BaseException:
                self.close()
                raise
        self._identity = msgspec.structs.replace(identity(config), dimension=self._dimension)

    @property
    def identity(self) -> EmbedderIdentity:
        """What decides the vectors, with their true dimension."""
        return self._identity

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """The vectors of passages, sorted by length: servers pad a batch to its longest text."""
        config = self._config
        order = sorted(range(len(texts)), key=lambda index: (len(texts[index]), index))
        for start in range(0, len(order), config.batch):
            indices = order[start : start + config.batch]
            passages = [config.passage_prefix + texts[index] for index in indices]
            yield indices, self._ask(passages, timeout=config.timeout, retries=config.retries)

    def query(self, text: str) -> NDArray[np.float32]:
        """The (dimension,) vector of a query, or an error within some ten seconds."""
        config = self._config
        vector: NDArray[np.float32] = self._ask(
            [config.query_prefix + text],
            timeout=min(config.timeout, _QUERY_TIMEOUT),
            retries=min(config.retries, _QUERY_RETRIES),
            longest_wait=_QUERY_WAIT,
        )[0]
        return vector

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _ask(
        self, texts: list[str], *, timeout: float, retries: int, longest_wait: float = 60.0
    ) -> NDArray[np.float32]:
        """One request: an (n, dimension) array in the order of `texts`."""
        body = msgspec.json.encode({"model": self._config.model, "input": [bounded(text) for text in texts]})
        answer = self._transport.post(body, timeout=timeout, retries=retries, longest_wait=longest_wait)
        rows = self._in_order(self._decode(answer), len(texts))
        if len({len(row) for row in rows}) > 1:
            raise self._wrong("gave vectors of different lengths")
        return unit_rows(rows, dimension=self._dimension, where=self._transport.shown)

    def _decode(self, answer: bytes) -> list[_Row]:
        try:
            return _decoder.decode(answer).data
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._wrong(f"gave an answer of another form ({error})") from error

    def _in_order(self, rows: list[_Row], count: int) -> list[list[float]]:
        """The vectors in the order of the texts. Servers may answer in any order, and then number the rows."""
        if len(rows) != count:
            raise self._wrong(f"gave {len(rows)} vectors for {count} texts")
        positions = [row.index for row in rows]
        if all(position is None for position in positions):
            return [row.embedding for row in rows]
        if {*positions} != {*range(count)}:
            raise self._wrong("numbered its vectors wrongly")
        return [row.embedding for _, row in sorted(zip(positions, rows, strict=True), key=_position)]

    def _wrong(self, what: str) -> EmbedderError:
        return EmbedderError(
            f"the embedding endpoint {what}",
            where=self._transport.shown,
            next_step="check that the URL leads to an OpenAI-compatible embeddings service and that the model is one",
        )


def _position(numbered: tuple[int | None, _Row]) -> int:
    return numbered[0] or 0
