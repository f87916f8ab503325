"""Server mode: a Chroma server over HTTP, spoken to with the public client; the cheap check uses plain HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.chroma import http
from pipeline.chroma.config import DEFAULT_DATABASE, DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.chroma.config import ChromaConfig
    from pipeline.chroma.engine import Engine


class ServerBackend:
    """Opens a connection to the server of the configuration."""

    local = False

    def __init__(self, config: ChromaConfig) -> None:
        self.config = config
        self.where = config.where
        self.notices: list[str] = []

    def open(self) -> Engine:
        """The engine. Raises UnreachableError within the timeout when nobody answers."""
        sent = headers(self.config)
        http.alive(self.config, sent, *_scope(self.config))

        from pipeline.chroma import client

        return client.server(self.config, sent)

    def set_aside(self) -> str:
        """A server's files are its own affair; the caller removes the collection."""
        return ""

    def sweep(self) -> None:
        """Nothing lies about on our side."""

    def probe(self, namespace: str, name: str) -> None:
        """A damaged index ends the server's process, not ours."""


def headers(config: ChromaConfig) -> dict[str, str]:
    """What is sent with each request."""
    bearer = {"Authorization": f"Bearer {config.token}"} if config.token else {}
    return {**bearer, **config.headers}


def fingerprint(config: ChromaConfig, collection: str, sent: Mapping[str, str] | None = None) -> str | None:
    """What the server says of the collection: its identity, stamp and number of rows. None: it has no finished one.

    Two plain HTTP requests. Raises UnreachableError when the server is down, OperatorError when it refuses.
    """
    base = f"{http.database_path(*_scope(config))}/collections"
    given = headers(config) if sent is None else dict(sent)
    found: Any = http.get(config, f"{base}/{http.quoted(collection)}", given)
    if not isinstance(found, dict) or not (found.get("metadata") or {}).get("stamp"):
        return None
    rows = http.get(config, f"{base}/{http.quoted(str(found.get('id')))}/count", given)
    return f"{found.get('id')}:{rows}:{found['metadata']['stamp']}"


def _scope(config: ChromaConfig) -> tuple[str, str]:
    return config.tenant or DEFAULT_TENANT, config.database or DEFAULT_DATABASE
