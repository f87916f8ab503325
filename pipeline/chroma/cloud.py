"""Cloud mode: Chroma Cloud, the same operations as a server behind an API key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.chroma import http, server

if TYPE_CHECKING:
    from pipeline.chroma.config import ChromaConfig
    from pipeline.chroma.engine import Engine


class CloudBackend(server.ServerBackend):
    """Opens a connection to the cloud with the configuration's token as the API key."""

    def open(self) -> Engine:
        """The engine. Raises UnreachableError within the timeout when nobody answers."""
        http.alive(self.config, headers(self.config), self.config.tenant, self.config.database)

        from pipeline.chroma import client

        return client.cloud(self.config)


def headers(config: ChromaConfig) -> dict[str, str]:
    """What is sent with each plain request."""
    return {"x-chroma-token": config.token, **config.headers}


def fingerprint(config: ChromaConfig, collection: str) -> str | None:
    """As in server mode. Without a tenant and a database in the configuration the cloud's names are not known: None."""
    if not config.tenant or not config.database:
        return None
    return server.fingerprint(config, collection, headers(config))
