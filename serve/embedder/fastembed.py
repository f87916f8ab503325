"""Any text model that fastembed knows, by name: fetched from its hub once, or read from a folder."""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from serve.embedder import identity
from serve.embedder.parallel import in_order
from serve.embedder.vectors import bounded, unit_rows
from serve.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from serve.contract import EmbedderIdentity
    from serve.embedder import EmbedderConfig


class FastembedEmbedder:
    """Loads the model at once, and learns its dimension from a first vector.

    Texts go through the model's own `passage_embed` and `query_embed` one by one on several threads: padding in a
    batch would let a text's neighbours into the last digits of its vector.
    """

    def __init__(self, config: EmbedderConfig) -> None:
        self._config = config
        self._model = _load(config)
        probe = self._one(self._model.query_embed, "dimension")
        self._identity = msgspec.structs.replace(identity(config), dimension=len(probe))

    @property
    def identity(self) -> EmbedderIdentity:
        """What decides the vectors, with their true dimension."""
        return self._identity

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """The vectors of passages, in their order."""
        prefix = self._config.passage_prefix
        yield from in_order(
            texts, lambda text: self._one(self._model.passage_embed, prefix + text), batch=self._config.batch
        )

    def query(self, text: str) -> NDArray[np.float32]:
        """The (dimension,) vector of a query."""
        return self._one(self._model.query_embed, self._config.query_prefix + text)

    def close(self) -> None:
        """Nothing to let go of: the model ends with this object."""

    def _one(self, embed: Any, text: str) -> NDArray[np.float32]:
        try:
            rows = list(embed([bounded(text)]))
        except Exception as error:  # what onnxruntime and tokenizers raise has no common base
            raise EmbedderError(
                f"the model cannot embed a text ({_first_line(error)})",
                where=self._config.model,
                next_step="choose another model, or install fastembed again",
            ) from error
        vector: NDArray[np.float32] = unit_rows(rows, dimension=self._config.dimension, where=self._config.model)[0]
        return vector


def _load(config: EmbedderConfig) -> Any:
    """The model, single-threaded: `in_order` runs several texts side by side."""
    try:
        from fastembed import TextEmbedding  # an optional package that takes half a second to import
        from loguru import logger  # comes with fastembed
    except ImportError as error:
        raise EmbedderError(
            f"fastembed is not installed ({error.name or error})",
            where=config.model,
            next_step="install retrieval[build], or configure another embedder",
        ) from error
    logger.disable("fastembed")  # what it would log is in the error below
    _require_known(config.model, [str(model["model"]) for model in TextEmbedding.list_supported_models()])
    _keep_downloads_quiet()
    try:
        return TextEmbedding(
            config.model,
            cache_dir=str(config.cache_dir) if config.cache_dir else None,
            threads=1,
            specific_model_path=str(config.path) if config.path else None,
        )
    except Exception as error:  # the hub's client, tokenizers and onnxruntime raise what they like
        raise EmbedderError(
            f"fastembed cannot load the model {config.model!r} ({_first_line(error)})",
            where=str(config.path or config.cache_dir or config.model),
            next_step="correct the folder of model files"
            if config.path
            else "make the model hub reachable for the first run, or give a folder that holds the model's files",
        ) from error


def _require_known(model: str, known: list[str]) -> None:
    if model.lower() in (name.lower() for name in known):
        return
    close = difflib.get_close_matches(model, known, n=1, cutoff=0.4)
    raise EmbedderError(
        f"fastembed knows no model named {model!r}",
        where="the embedder's settings",
        next_step=f"did you mean {close[0]!r}?" if close else "name one of fastembed's text models",
    )


def _keep_downloads_quiet() -> None:
    """No progress bars of the hub's client where nobody watches."""
    if sys.stderr.isatty():
        return
    from huggingface_hub.utils.tqdm import disable_progress_bars  # comes with fastembed

    disable_progress_bars()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
