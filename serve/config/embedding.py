"""The embedder's settings out of the variables: building and answering must read them alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from serve.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from serve.config.lookup import Lookup
    from serve.embedder import EmbedderConfig

BUILTIN_MODEL = "all-MiniLM-L6-v2"
FASTEMBED_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True)
class EmbeddingSettings:
    """Which embedder makes the vectors. kind: builtin, fastembed or endpoint.

    batch: texts per call. timeout: seconds per request. retries: further attempts after a failed one. cache: where
    fastembed keeps downloaded models; None leaves that to fastembed.
    """

    kind: str
    model: str
    url: str
    api_key: str = field(repr=False)
    batch: int
    timeout: float
    retries: int
    query_prefix: str
    passage_prefix: str
    cache: Path | None


def embedding_settings(lookup: Lookup) -> EmbeddingSettings:
    """Which embedder makes the vectors. Raises ConfigError when an endpoint lacks its address or model."""
    kind = lookup.text("RETRIEVAL_EMBEDDER")
    if kind == "endpoint":
        for name in ("RETRIEVAL_EMBEDDING_URL", "RETRIEVAL_EMBEDDING_MODEL"):
            if not lookup.name_in_use(name):
                missing(lookup, name, "RETRIEVAL_EMBEDDER")
    model = lookup.text("RETRIEVAL_EMBEDDING_MODEL")
    if kind == "builtin":
        model = BUILTIN_MODEL
    return EmbeddingSettings(
        kind=kind,
        model=model or FASTEMBED_MODEL,
        url=lookup.text("RETRIEVAL_EMBEDDING_URL") if kind == "endpoint" else "",
        api_key=lookup.text("RETRIEVAL_EMBEDDING_API_KEY") if kind == "endpoint" else "",
        batch=int(lookup.number("RETRIEVAL_EMBEDDING_BATCH")),
        timeout=lookup.number("RETRIEVAL_EMBEDDING_TIMEOUT"),
        retries=int(lookup.number("RETRIEVAL_EMBEDDING_RETRIES")),
        query_prefix=lookup.text("RETRIEVAL_EMBEDDING_QUERY_PREFIX"),
        passage_prefix=lookup.text("RETRIEVAL_EMBEDDING_PASSAGE_PREFIX"),
        cache=lookup.path("RETRIEVAL_FASTEMBED_CACHE"),
    )


def embedder_config(chosen: EmbeddingSettings, data_dir: Path) -> EmbedderConfig:
    """The settings as an embedder takes them. The builtin model keeps its prepared copy in the data folder."""
    from serve.embedder import EmbedderConfig  # who only reads settings loads no embedder

    builtin = chosen.kind == "builtin"
    return EmbedderConfig(
        kind=chosen.kind,
        model="" if builtin else chosen.model,  # the builtin embedder has one model, and names it itself
        url=chosen.url,
        api_key=chosen.api_key,
        batch=chosen.batch,
        timeout=chosen.timeout,
        retries=chosen.retries,
        query_prefix=chosen.query_prefix,
        passage_prefix=chosen.passage_prefix,
        cache_dir=chosen.cache or (data_dir / "models" if builtin else None),
    )


def missing(lookup: Lookup, name: str, because: str) -> None:
    """Raise for a variable that the value of another one asks for."""
    raise ConfigError(
        f"{because} is {lookup.text(because)}, which needs {name}",
        where=lookup.environ.where(because),
        next_step=f"set {name} in the environment or in .env",
    )
