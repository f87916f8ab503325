"""How the vector store is reached, checked before anything is opened, and what its collections are called."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from blake3 import blake3

from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

MODES = ("embedded", "server", "cloud")
CLOUD_HOST = "api.trychroma.com"
CLOUD_PORT = 443
DEFAULT_TENANT = "default_tenant"
DEFAULT_DATABASE = "default_database"

_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")
_DIGEST_CHARS = 32
_EMBEDDER = re.compile(rf"[0-9a-f]{{{_DIGEST_CHARS}}}")


@dataclass(frozen=True, kw_only=True)
class ChromaConfig:
    """Where the store is.

    mode: embedded (files below `path`), server (an HTTP server at host and port) or cloud. namespace: what tells one data
    directory's collections from another's on the same server: lower-case letters, digits, `-` and `_`. token: sent as a
    bearer token to a server, as the API key to the cloud. headers: sent with each request. tenant, database: "" means
    the server's own default. timeout: seconds that a server may take to answer.
    """

    mode: str = "embedded"
    namespace: str
    path: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    ssl: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    token: str = field(default="", repr=False)
    tenant: str = ""
    database: str = ""
    timeout: float = 60.0

    @property
    def where(self) -> str:
        """The place to name in messages."""
        if self.mode == "embedded":
            return self.path
        return f"{'https' if self.ssl else 'http'}://{self.host}:{self.port}"


def checked(config: ChromaConfig) -> ChromaConfig:
    """The config itself. Raises OperatorError (usage) for a value that no store could be opened with."""
    if config.mode not in MODES:
        raise _unusable(f"there is no Chroma mode `{config.mode}`", f"set RETRIEVAL_CHROMA_MODE to {', '.join(MODES)}")
    if not _NAMESPACE.fullmatch(config.namespace):
        raise _unusable(
            f"`{config.namespace}` is no namespace for collections",
            "set RETRIEVAL_NAMESPACE to at most 48 lower-case letters, digits, - and _",
        )
    if config.mode == "embedded" and not config.path:
        raise _unusable("the embedded Chroma store has no folder", "set RETRIEVAL_CHROMA_PATH")
    if config.mode != "embedded" and ("/" in config.host or not config.host):
        raise _unusable(
            f"`{config.host}` is no host name for Chroma",
            "set RETRIEVAL_CHROMA_HOST to the name alone, RETRIEVAL_CHROMA_PORT and RETRIEVAL_CHROMA_SSL beside it",
        )
    if config.mode == "cloud" and not config.token:
        raise _unusable(
            "Chroma Cloud needs an API key", "set RETRIEVAL_CHROMA_TOKEN, or RETRIEVAL_CHROMA_MODE=embedded"
        )
    return config


def collection_name(namespace: str, embedder: str) -> str:
    """The name of a namespace's collection for one embedder, given as the digest of its identity or any other text.

    Names are never made by dropping characters: two namespaces, or two embedders, cannot share a collection.
    """
    if not _EMBEDDER.fullmatch(embedder):
        embedder = blake3(embedder.encode("utf-8", "surrogatepass")).hexdigest(length=_DIGEST_CHARS // 2)
    return f"{namespace}-{embedder}"


def belongs(name: str, namespace: str) -> bool:
    """Whether a collection is one of a namespace's, whatever its embedder."""
    head, tail = name[: -_DIGEST_CHARS - 1], name[-_DIGEST_CHARS - 1 :]
    return head == namespace and tail[:1] == "-" and _EMBEDDER.fullmatch(tail[1:]) is not None


def _unusable(what: str, next_step: str) -> OperatorError:
    return OperatorError(what, next_step=next_step, code=ExitCode.USAGE)
