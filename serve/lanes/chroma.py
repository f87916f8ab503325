"""The semantic lane through a Chroma server: the store of record ranks, this process only asks over HTTP."""

from __future__ import annotations

import http.client
import json
from typing import Any, Self
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from serve.contract import StoreInfo
from serve.errors import UnreachableError
from serve.lanes.hits import Hits, Mask, top
from serve.snapshot import Snapshot

TIMEOUT = 5.0  # seconds: a query waits no longer for the server before the other lanes answer alone
_WIDEN = 4


def search(
    snapshot: Snapshot, vectors: npt.NDArray[np.float32], count: int, mask: Mask | None, token: str = ""
) -> Hits:
    """The `count` rows nearest to a query by the server's own ranking, with their similarity.

    vectors: float32 [m, dimension] as for `serve.lanes.semantic.search`, and the same similarity over what the server gives.
    Rows that the snapshot does not have (the server may be a moment ahead) or that `mask` leaves out are passed over; when
    too few remain, more are asked for. Raises UnreachableError when the server does not answer or lacks the collection.
    """
    similarity = np.full((len(vectors), len(snapshot)), -1.0)
    allowed = np.zeros(len(snapshot), dtype=bool)
    with _Server(snapshot.manifest.store, token) as server:
        for part, vector in enumerate(vectors):
            for row, cosine in _nearest(server, snapshot, vector, count, mask):
                similarity[part, row] = cosine
                allowed[row] = True
    scores = similarity[0]
    if len(vectors) > 1:
        scores = (scores + similarity[1:].max(axis=0)) / 2
    return top(scores, count, mask=allowed)


def _nearest(
    server: _Server, snapshot: Snapshot, vector: npt.NDArray[np.float32], count: int, mask: Mask | None
) -> list[tuple[int, float]]:
    asked = min(count, len(snapshot))
    found: list[tuple[int, float]] = []
    while asked:
        ids, distances = server.nearest(vector, asked)
        rows = ((snapshot.row_of(skill), distance) for skill, distance in zip(ids, distances, strict=True))
        found = [(row, 1.0 - distance) for row, distance in rows if row is not None and (mask is None or mask[row])]
        if len(found) >= count or len(ids) < asked or asked == len(snapshot):
            break
        asked = min(asked * _WIDEN, len(snapshot))
    return found[:count]


class _Server:
    """One connection to the server, for one query."""

    def __init__(self, store: StoreInfo, token: str) -> None:
        self.store = store
        kind = http.client.HTTPSConnection if store.ssl else http.client.HTTPConnection
        self.connection = kind(store.host, store.port, timeout=TIMEOUT)
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers |= {"Authorization": f"Bearer {token}", "x-chroma-token": token}
        tenant, database = store.tenant or "default_tenant", store.database or "default_database"
        self.base = f"/api/v2/tenants/{quote(tenant, safe='')}/databases/{quote(database, safe='')}/collections"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.connection.close()

    def nearest(self, query: npt.NDArray[np.float32], count: int) -> tuple[list[str], list[float]]:
        """IDs and cosine distances of the nearest rows."""
        collection = self._call("GET", f"{self.base}/{quote(self.store.collection, safe='')}")["id"]
        body = {"query_embeddings": [query.tolist()], "n_results": count, "include": ["distances"]}
        answer = self._call("POST", f"{self.base}/{collection}/query", body)
        return answer["ids"][0], answer["distances"][0]

    def _call(self, method: str, path: str, body: object = None) -> Any:
        where = f"{'https' if self.store.ssl else 'http'}://{self.store.host}:{self.store.port}"
        try:
            self.connection.request(method, path, json.dumps(body) if body is not None else None, self.headers)
            response = self.connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(
                f"the Chroma server does not answer: {str(error) or type(error).__name__}",
                where=where,
                next_step="start it, or build again in embedded mode",
            ) from error
        if response.status != http.client.OK:
            raise UnreachableError(
                f"the Chroma server answers {response.status} for collection {self.store.collection}",
                where=where,
                next_step="run `retrieval build`; it writes the collection again",
            )
        return json.loads(data)
