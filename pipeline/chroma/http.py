"""Plain HTTP to a Chroma server with a time limit, for the checks that must not cost an `import chromadb`."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPException
from typing import IO, Any

from pipeline.chroma.config import ChromaConfig
from pipeline.chroma.faults import StoreError, unreachable

_MAX_ANSWER = 1 << 20
_REFUSED = (401, 403)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Never follow."""


def quoted(part: str) -> str:
    """A name as one segment of a URL's path."""
    return urllib.parse.quote(part, safe="")


def database_path(tenant: str, database: str) -> str:
    """The path of a database, below which its collections are."""
    return f"/api/v2/tenants/{quoted(tenant)}/databases/{quoted(database)}"


def alive(config: ChromaConfig, headers: Mapping[str, str], tenant: str, database: str) -> None:
    """Raises UnreachableError when no Chroma server answers, StoreError when it has no such database.

    Asked before a client is made: that would wait for ever, and leaves its connections open when it fails. An empty
    tenant or database is the server's own affair.
    """
    answer = get(config, "/api/v2/heartbeat", headers)
    if not isinstance(answer, dict) or "nanosecond heartbeat" not in answer:
        raise unreachable("what answers there is no Chroma server", config.where)
    if tenant and database and get(config, database_path(tenant, database), headers) is None:
        raise StoreError(
            f"the Chroma server has no database `{database}` of a tenant `{tenant}`",
            where=config.where,
            next_step="set RETRIEVAL_CHROMA_TENANT and RETRIEVAL_CHROMA_DATABASE to names that exist there",
        )


def get(config: ChromaConfig, path: str, headers: Mapping[str, str]) -> Any:
    """The JSON that a GET gives; None for 404. Raises UnreachableError, or StoreError when the server refuses."""
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        request = urllib.request.Request(config.where + path, headers=dict(headers))  # noqa: S310 - http or https by `where`
        with opener.open(request, timeout=config.timeout) as answer:
            return json.loads(answer.read(_MAX_ANSWER))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            return None
        if error.code in _REFUSED:
            raise StoreError(
                "the Chroma server refuses the credentials", where=config.where, next_step="set RETRIEVAL_CHROMA_TOKEN"
            ) from error
        raise unreachable(f"the Chroma server answers with HTTP {error.code}", config.where) from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise unreachable(f"the Chroma server does not answer: {reason}", config.where) from error
    except ValueError as error:
        raise unreachable("what answers there is no Chroma server", config.where) from error
