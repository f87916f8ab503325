"""The settings of the vector store, the embedder and the limits, out of the variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.config.values import ChromaSettings, ConfigWarning, EmbeddingSettings, Limits
from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.config.lookup import Lookup

BUILTIN_MODEL = "all-MiniLM-L6-v2"
FASTEMBED_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

_CHROMA_REMOTE = ("HOST", "PORT", "SSL", "TOKEN", "TENANT", "DATABASE")
_ENDPOINT_ONLY = ("URL", "API_KEY")


def chroma_settings(lookup: Lookup, data_dir: Path) -> ChromaSettings:
    """How the vector store is reached. Raises ConfigError when the cloud lacks its token."""
    mode = lookup.text("RETRIEVAL_CHROMA_MODE")
    cloud = mode == "cloud"
    token = lookup.text("RETRIEVAL_CHROMA_TOKEN")
    if cloud and not token:
        _missing(lookup, "RETRIEVAL_CHROMA_TOKEN", "RETRIEVAL_CHROMA_MODE")
    ssl = lookup.value("RETRIEVAL_CHROMA_SSL")
    return ChromaSettings(
        mode=mode,
        host=lookup.text("RETRIEVAL_CHROMA_HOST") or ("api.trychroma.com" if cloud else "127.0.0.1"),
        port=int(lookup.number("RETRIEVAL_CHROMA_PORT")) or (443 if cloud else 8000),
        ssl=cloud if ssl is None else bool(ssl),
        token=token,
        tenant=lookup.text("RETRIEVAL_CHROMA_TENANT"),
        database=lookup.text("RETRIEVAL_CHROMA_DATABASE"),
        path=lookup.path("RETRIEVAL_CHROMA_PATH") or data_dir / "chroma",
        namespace=lookup.text("RETRIEVAL_NAMESPACE"),
    )


def embedding_settings(lookup: Lookup) -> EmbeddingSettings:
    """Which embedder makes the vectors. Raises ConfigError when an endpoint lacks its address or model."""
    kind = lookup.text("RETRIEVAL_EMBEDDER")
    if kind == "endpoint":
        for name in ("RETRIEVAL_EMBEDDING_URL", "RETRIEVAL_EMBEDDING_MODEL"):
            if not lookup.name_in_use(name):
                _missing(lookup, name, "RETRIEVAL_EMBEDDER")
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


def limits(lookup: Lookup) -> Limits:
    """Sizes above which a skill is reported instead of read."""
    return Limits(skill_bytes=int(lookup.number("RETRIEVAL_MAX_SKILL_BYTES")))


def without_effect(lookup: Lookup) -> list[ConfigWarning]:
    """Variables that are set for a mode that is not chosen. Choosing the mode explicitly says that this is meant."""
    embedder, warnings = lookup.text("RETRIEVAL_EMBEDDER"), []
    if not lookup.name_in_use("RETRIEVAL_EMBEDDER"):
        idle = [f"RETRIEVAL_EMBEDDING_{end}" for end in ("MODEL", *_ENDPOINT_ONLY)]
        warnings += _idle(lookup, idle, "RETRIEVAL_EMBEDDER", embedder, "endpoint")
    if not lookup.name_in_use("RETRIEVAL_CHROMA_MODE"):
        idle = [f"RETRIEVAL_CHROMA_{end}" for end in _CHROMA_REMOTE]
        warnings += _idle(lookup, idle, "RETRIEVAL_CHROMA_MODE", lookup.text("RETRIEVAL_CHROMA_MODE"), "server")
    return warnings


def _idle(lookup: Lookup, names: list[str], switch: str, chosen: str, wanted: str) -> list[ConfigWarning]:
    used = [found for found in map(lookup.name_in_use, names) if found]
    if not used:
        return []
    verb = "has" if len(used) == 1 else "have"
    return [
        ConfigWarning(
            f"{', '.join(used)} {verb} no effect, because {switch} is {chosen}",
            lookup.environ.where(used[0]),
            f"set {switch}={wanted} to use what is set, or {switch}={chosen} to keep it unused",
        )
    ]


def _missing(lookup: Lookup, name: str, because: str) -> None:
    raise ConfigError(
        f"{because} is {lookup.text(because)}, which needs {name}",
        where=lookup.environ.where(because),
        next_step=f"set {name} in the environment or in .env",
    )
