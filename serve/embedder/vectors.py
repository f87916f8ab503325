"""The promise every provider keeps: vectors of one length, float32, finite, of norm one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from serve.errors import EmbedderError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# What stands behind this many characters of a text never reaches a vector: no model here reads that far, and the time
# for one text stays bounded.
MAX_CHARS = 4096


def bounded(text: str) -> str:
    """The part of a text that is embedded, free of halves of surrogate pairs, which no tokenizer takes."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def unit_rows(raw: ArrayLike, *, dimension: int | None, where: str) -> NDArray[np.float32]:
    """Rows scaled to norm one.

    raw: (n, dimension) numbers. dimension: the length that is expected, None for any. where: shown in errors.
    Raises EmbedderError for a wrong length, numbers that are not finite, and rows without direction.
    """
    values = np.asarray(raw, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] == 0:
        raise _broken("gave something other than one vector a text", where)
    if dimension is not None and values.shape[1] != dimension:
        raise EmbedderError(
            f"the embedder gave vectors of {values.shape[1]} numbers where {dimension} are expected",
            where=where,
            next_step="configure the model that made the index, or run `retrieval build` with the new one",
        )
    with np.errstate(over="ignore"):  # a norm that overflows is reported below, not warned of
        norms = np.sqrt((values * values).sum(axis=1, keepdims=True))
    if not np.isfinite(norms).all():
        raise _broken("gave numbers that are not finite", where)
    if (norms < 1e-12).any():
        raise _broken("gave a vector of zeros", where)
    rows: NDArray[np.float32] = (values / norms).astype(np.float32)
    return rows


def _broken(what: str, where: str) -> EmbedderError:
    return EmbedderError(f"the embedder {what}", where=where, next_step="check that the model is one for embeddings")
