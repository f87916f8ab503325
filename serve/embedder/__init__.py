"""Embedders turn texts into unit vectors: the model that comes along, any fastembed model, or an endpoint.

Importing this package costs nothing and loads no model: a build with nothing to do asks only for `identity`.
`open_embedder` gives an `Embedder`; every vector from it is float32, finite and of length one.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from serve.contract import EmbedderIdentity
from serve.embedder import minilm
from serve.errors import ContractError, EmbedderError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "KINDS",
    "Embedder",
    "EmbedderConfig",
    "identity",
    "open_embedder",
    "require_same_space",
]

# onnxruntime reports to its maker, and keeps a device ID and a database for that in the home folder, unless it is told not to
# before it is loaded; so does the library that fastembed downloads models with. Whoever wants that sets the variable to 0.
for _name in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY"):
    os.environ.setdefault(_name, "1")

KINDS = ("builtin", "fastembed", "endpoint")


class EmbedderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Which embedder to use and how. Only what `identity` repeats decides what a vector looks like.

    kind: one of `KINDS`. model: its name; empty for the builtin one. url: an endpoint's base ("…/v1") or its full
    address ("…/embeddings"). api_key: sent as a bearer token, never shown. path: for fastembed, a folder that holds
    the model's files. batch: how many texts may be under way at once, and an endpoint's texts per request.
    timeout: seconds for one request. retries: how often a failed request is repeated. cache_dir: folder for model
    files. dimension: the length that vectors must have, None to take what the model gives.
    """

    kind: str = "builtin"
    model: str = ""
    url: str = ""
    api_key: str = ""
    path: Path | None = None
    batch: int = 32
    timeout: float = 30.0
    retries: int = 4
    query_prefix: str = ""
    passage_prefix: str = ""
    cache_dir: Path | None = None
    dimension: int | None = None

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"EmbedderConfig({', '.join(shown)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The fields for printing. The key is left out, and so is the URL, which may hold a password."""
        return [(name, getattr(self, name)) for name in self.__struct_fields__ if name not in ("api_key", "url")]


class Embedder(Protocol):
    """Gives vectors. May be used from several threads at once."""

    @property
    def identity(self) -> EmbedderIdentity:
        """What decides the vectors, with their true dimension."""

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """The vectors of passages: positions in `texts` and an (n, dimension) array, batch after batch.

        At most `batch` texts are computed and not yet asked beyond, so that whoever saves each batch before asking
        for the next one loses no more than that when killed. A text's vector does not depend on its neighbours as
        far as the provider computes here.
        Raises EmbedderError or UnreachableError; what was given before stays valid.
        """

    def query(self, text: str) -> NDArray[np.float32]:
        """The (dimension,) vector of a query. Raises EmbedderError or UnreachableError."""

    def close(self) -> None:
        """Let go of connections."""


def identity(config: EmbedderConfig) -> EmbedderIdentity:
    """What decides the vectors, without loading a model or asking a server.

    dimension is 0 while only the model itself could tell; it is always the same for the same configuration, so keys
    can be made from it. Raises EmbedderError for a configuration that names no embedder.
    """
    _check(config)
    prefixes = {"query_prefix": config.query_prefix, "passage_prefix": config.passage_prefix}
    if config.kind == "builtin":
        return EmbedderIdentity(
            kind="builtin",
            model=minilm.MODEL,
            digest=minilm.WEIGHTS_DIGEST,
            dimension=minilm.DIMENSION,
            **prefixes,
        )
    digest = _folder_digest(config.path) if config.path is not None else ""
    return EmbedderIdentity(
        kind=config.kind, model=config.model, digest=digest, dimension=config.dimension or 0, **prefixes
    )


def open_embedder(config: EmbedderConfig) -> Embedder:
    """The configured embedder. A server is asked for its dimension here unless the configuration gives it.

    Raises EmbedderError when it cannot be loaded, UnreachableError when its server does not answer. The builtin model
    is loaded and checked at the first text.
    """
    _check(config)
    if config.kind == "builtin":
        from serve.embedder.builtin import BuiltinEmbedder  # loads numpy and onnxruntime

        return BuiltinEmbedder(config)
    if config.kind == "fastembed":
        from serve.embedder.fastembed import FastembedEmbedder  # takes half a second to import

        return FastembedEmbedder(config)
    from serve.embedder.endpoint import EndpointEmbedder  # loads numpy and the HTTP client

    return EndpointEmbedder(config)


def require_same_space(index: EmbedderIdentity, mine: EmbedderIdentity) -> None:
    """Refuse to compare vectors of two embedders.

    index: what the published vectors were made with. mine: what would embed the query. The recipe concerns passages
    alone, and a dimension of 0 is not known yet; all else must agree. Raises ContractError naming what differs.
    """
    differing = [
        f"{field} {ours!r} instead of {theirs!r}"
        for field in ("kind", "model", "digest", "dimension", "query_prefix", "passage_prefix")
        if (ours := getattr(mine, field)) != (theirs := getattr(index, field))
        and not (field == "dimension" and 0 in (ours, theirs))
    ]
    if differing:
        raise ContractError(
            f"the configured embedder is not the one that made the index: {'; '.join(differing)}",
            next_step="run `retrieval build`, or configure the embedder that made the index",
        )


def _check(config: EmbedderConfig) -> None:
    """Raise for a configuration that cannot work, before anything is loaded."""
    if config.kind not in KINDS:
        raise _unusable(f"there is no embedder of the kind {config.kind!r}", f"use one of {', '.join(KINDS)}")
    if config.kind == "builtin":
        if config.model not in ("", minilm.MODEL):
            raise _unusable(
                f"the builtin embedder has one model, not {config.model!r}",
                'leave the model\'s name out, or set the kind "fastembed" or "endpoint"',
            )
        if config.dimension not in (None, minilm.DIMENSION):
            raise _unusable(
                f"the builtin model gives {minilm.DIMENSION} numbers a text, not {config.dimension}",
                "leave the dimension out",
            )
    elif not config.model:
        raise _unusable(f"the {config.kind} embedder needs the name of a model", "name the model")
    if config.kind == "endpoint" and not config.url:
        raise _unusable("the endpoint embedder needs an address", 'give the URL of the server, ending in "/v1"')
    if config.path is not None and config.kind != "fastembed":
        raise _unusable("only the fastembed embedder reads a folder of model files", "leave the path out")
    dimension = 1 if config.dimension is None else config.dimension
    if min(config.batch, dimension) < 1 or config.timeout <= 0 or config.retries < 0:
        raise _unusable(
            "an embedder's batch and dimension must be at least 1, its timeout above 0 and its retries 0 or more",
            "correct these numbers",
        )


def _unusable(what: str, next_step: str) -> EmbedderError:
    return EmbedderError(what, where="the embedder's settings", next_step=next_step, code=ExitCode.USAGE)


def _folder_digest(folder: Path) -> str:
    """blake3 over the names and contents of a folder of model files: a name alone would not notice other weights."""
    from blake3 import blake3  # needed by few

    digest = blake3()
    try:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if not files:
            raise FileNotFoundError(errno.ENOENT, "it holds no files")
        for file in files:
            content = blake3()
            with file.open("rb") as stream:
                while chunk := stream.read(1 << 20):
                    content.update(chunk)
            digest.update(f"{file.relative_to(folder).as_posix()}\0{content.hexdigest()}\n".encode())
    except OSError as error:
        raise EmbedderError(
            f"the folder of model files cannot be read ({error.strerror})",
            where=str(folder),
            next_step="correct the path to the model",
        ) from error
    return digest.hexdigest()
