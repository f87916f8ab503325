"""From settings to the configurations of the parts that know nothing of settings: embedder and vector store."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from pipeline.chroma.config import ChromaConfig, collection_name
from pipeline.engine import files
from serve.config import embedding
from serve.contract import StoreInfo
from serve.embedder import EmbedderConfig

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.settings import Settings

_ID = re.compile(r"[0-9a-f]{8}")


def embedder_config(settings: Settings) -> EmbedderConfig:
    """The embedder that the settings ask for."""
    return embedding.embedder_config(settings.embedder, settings.data_dir)


def chroma_config(settings: Settings) -> ChromaConfig:
    """The store that the settings ask for. On a server, collections carry this data directory's own ID beside the namespace."""
    chosen = settings.chroma
    namespace = chosen.namespace
    if chosen.mode != "embedded":
        namespace = f"{namespace}-{_installation(settings.data_dir)}"
    return ChromaConfig(
        mode=chosen.mode,
        namespace=namespace,
        path=str(chosen.path),
        host=chosen.host,
        port=chosen.port,
        ssl=chosen.ssl,
        token=chosen.token,
        tenant=chosen.tenant,
        database=chosen.database,
    )


def store_info(config: ChromaConfig, embedder: str) -> StoreInfo:
    """Where the store is, as the snapshot tells readers. embedder: the digest of the embedder's identity."""
    remote = config.mode != "embedded"
    return StoreInfo(
        mode=config.mode,
        collection=collection_name(config.namespace, embedder),
        host=config.host if remote else "",
        port=config.port if remote else 0,
        ssl=config.ssl if remote else False,
        tenant=config.tenant,
        database=config.database,
    )


def _installation(data_dir: Path) -> str:
    """Eight random hex digits that tell this data directory from others on the same server; made once."""
    path = data_dir / "installation"
    try:
        found = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        found = ""
    if not _ID.fullmatch(found):
        found = secrets.token_hex(4)
        files.write(path, found.encode())
    return found
