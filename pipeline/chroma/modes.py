"""Which mode is whose: opening the configured store, and asking cheaply whether it is still as it was left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.chroma.config import checked, collection_name
from pipeline.chroma.faults import StoreDamagedError
from pipeline.chroma.store import Store

if TYPE_CHECKING:
    from pipeline.chroma.config import ChromaConfig
    from pipeline.chroma.store import Backend


def open_store(config: ChromaConfig, embedder: str, *, repair: bool = True) -> Store:
    """Open the store of the configuration for the vectors of one embedder.

    embedder: the digest of its identity; each embedder has a collection of its own. repair: an embedded store whose files
    are broken is moved aside, a new one is begun and `Store.notices` says so; without it, that is a StoreDamagedError.
    Raises OperatorError (usage) for an unusable configuration, UnreachableError for a server that is down, StoreError
    otherwise.
    """
    checked(config)
    store = Store(_backend(config), config.namespace, collection_name(config.namespace, embedder))
    try:
        store.connect()
    except StoreDamagedError as error:
        if not repair:
            store.close()
            raise
        store.start_over(error)
    return store


def fingerprint(config: ChromaConfig, embedder: str) -> str | None:
    """A text that changes whenever somebody else wrote to the store; None when there is no finished store.

    Take it after the store was closed and compare it before the next build: when it is equal, what was written then is
    what is held now. Imports nothing of Chroma. Raises UnreachableError in server and cloud mode.
    """
    checked(config)
    name = collection_name(config.namespace, embedder)
    if config.mode == "embedded":
        from pipeline.chroma import embedded

        return embedded.fingerprint(config, name)
    if config.mode == "server":
        from pipeline.chroma import server

        return server.fingerprint(config, name)
    from pipeline.chroma import cloud

    return cloud.fingerprint(config, name)


def _backend(config: ChromaConfig) -> Backend:
    if config.mode == "embedded":
        from pipeline.chroma.embedded import EmbeddedBackend

        return EmbeddedBackend(config)
    if config.mode == "server":
        from pipeline.chroma.server import ServerBackend

        return ServerBackend(config)
    from pipeline.chroma.cloud import CloudBackend

    return CloudBackend(config)
