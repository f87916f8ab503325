"""The settings of the vector store, the embedder and the limits, out of the variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.config.values import ChromaSettings, ConfigWarning, Limits
from serve.config.embedding import BUILTIN_MODEL, FASTEMBED_MODEL, embedding_settings, missing

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.config.lookup import Lookup

__all__ = ["BUILTIN_MODEL", "FASTEMBED_MODEL", "chroma_settings", "embedding_settings", "limits", "without_effect"]

_CHROMA_REMOTE = ("HOST", "PORT", "SSL", "TOKEN", "TENANT", "DATABASE")
_ENDPOINT_ONLY = ("URL", "API_KEY")


def chroma_settings(lookup: Lookup, data_dir: Path) -> ChromaSettings:
    """How the vector store is reached. Raises ConfigError when the cloud lacks its token."""
    mode = lookup.text("RETRIEVAL_CHROMA_MODE")
    cloud = mode == "cloud"
    token = lookup.text("RETRIEVAL_CHROMA_TOKEN")
    if cloud and not token:
        missing(lookup, "RETRIEVAL_CHROMA_TOKEN", "RETRIEVAL_CHROMA_MODE")
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
