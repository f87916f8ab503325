"""Chroma through its public Python client: an embedded folder, a server or the cloud, all with the same calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import chromadb
from chromadb.config import Settings
from chromadb.errors import NotFoundError

from pipeline.chroma.config import DEFAULT_DATABASE, DEFAULT_TENANT
from pipeline.chroma.engine import HNSW, SPACE, Collection, Page, space_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from chromadb.api import ClientAPI

    from pipeline.chroma.config import ChromaConfig
    from pipeline.chroma.engine import Metadata, Rows, Vectors

_PAGE = 500


def persistent(path: Path) -> ClientEngine:
    """The engine on an embedded folder."""
    return ClientEngine(chromadb.PersistentClient(str(path), settings=_settings()), {"hnsw": HNSW})


def server(config: ChromaConfig, headers: Mapping[str, str]) -> ClientEngine:
    """The engine on a server."""
    client = chromadb.HttpClient(
        host=config.host,
        port=config.port,
        ssl=config.ssl,
        headers=dict(headers),
        # The address is said twice, so that an environment variable of Chroma's own cannot contradict it.
        settings=_settings(chroma_server_host=config.host, chroma_server_http_port=config.port),
        tenant=config.tenant or DEFAULT_TENANT,
        database=config.database or DEFAULT_DATABASE,
    )
    return ClientEngine(client, {"hnsw": HNSW}, config.timeout)


def cloud(config: ChromaConfig) -> ClientEngine:
    """The engine on Chroma Cloud."""
    client = chromadb.CloudClient(
        tenant=config.tenant or None,
        database=config.database or None,
        api_key=config.token,
        settings=_settings(),
        cloud_host=config.host,
        cloud_port=config.port,
        enable_ssl=config.ssl,
    )
    # The cloud's own index has none of HNSW's settings.
    return ClientEngine(client, {"spann": {"space": SPACE}}, config.timeout)


class ClientEngine:
    """An opened client. configuration: the index of new collections, e.g. {"hnsw": {"space": "cosine"}}.

    timeout: seconds for each request of a client that speaks HTTP.
    """

    kind = "client"

    def __init__(self, client: ClientAPI, configuration: dict[str, Any], timeout: float = 0) -> None:
        self._client = client
        self._configuration = configuration
        self._sessions = _http_sessions(client)
        for session in self._sessions:
            session.timeout = timeout
        self.max_batch: int = client.get_max_batch_size()

    def find(self, name: str) -> Collection | None:
        """A collection by name."""
        try:
            return _collection(self._client.get_collection(name, embedding_function=None))
        except NotFoundError:
            return None

    def create(self, name: str, metadata: Metadata) -> Collection:
        """A new collection in cosine space without an embedding function."""
        made = self._client.create_collection(
            name,
            configuration=dict(self._configuration),  # type: ignore[arg-type]
            metadata=metadata,
            embedding_function=None,
        )
        return _collection(made)

    def names(self) -> list[str]:
        """The names of all collections of this database."""
        found: list[str] = []
        while True:
            page = self._client.list_collections(limit=_PAGE, offset=len(found))
            found += [item.name for item in page]
            if len(page) < _PAGE:
                return found

    def remove(self, name: str) -> None:
        """Remove a collection with its rows."""
        self._client.delete_collection(name)

    def annotate(self, collection: Collection, metadata: Metadata) -> None:
        """Replace a collection's metadata."""
        collection.native.modify(metadata=metadata)

    def count(self, collection: Collection) -> int:
        """How many rows it has."""
        return int(collection.native.count())

    def put(self, collection: Collection, rows: Rows) -> None:
        """Insert rows, or overwrite those of the same IDs."""
        collection.native.upsert(
            ids=list(rows.ids),
            embeddings=rows.vectors,
            metadatas=list(rows.metadatas),
            documents=list(rows.documents),
        )

    def drop(self, collection: Collection, ids: Sequence[str]) -> None:
        """Remove rows; IDs that are not there are ignored."""
        collection.native.delete(ids=list(ids))

    def read(
        self, collection: Collection, include: Sequence[str], ids: Sequence[str] | None, limit: int | None, offset: int
    ) -> Page:
        """Rows by ID, or a page of all."""
        wanted = None if ids is None else list(ids)
        got = collection.native.get(ids=wanted, limit=limit, offset=offset, include=list(include))
        vectors = got["embeddings"]
        return Page(got["ids"], got["metadatas"] or [], got["documents"] or [], [] if vectors is None else vectors)

    def query(self, collection: Collection, vector: Vectors, k: int) -> tuple[list[str], list[float]]:
        """The k nearest rows with their cosine distances, nearest first."""
        got = collection.native.query(query_embeddings=[vector], n_results=k, include=["distances"])
        return got["ids"][0], got["distances"][0]

    def close(self) -> None:
        """Close connections and files."""
        self._client.close()  # type: ignore[attr-defined]  # every client has it, the common type does not say so
        for session in self._sessions:
            session.close()


def _http_sessions(client: ClientAPI) -> list[Any]:
    """The HTTP sessions of a client and of the second one inside it: it gives them no time limit and never closes them."""
    servers = [getattr(owner, "_server", None) for owner in (client, getattr(client, "_admin_client", None))]
    sessions = [getattr(server, "_session", None) for server in servers]
    return [session for session in sessions if session is not None]


def _settings(**values: Any) -> Settings:
    """Settings without telemetry, and without a `.env` of the current folder that may belong to something else."""
    return Settings(anonymized_telemetry=False, _env_file=None, **values)  # type: ignore[call-arg]  # pydantic's own


def _collection(item: Any) -> Collection:
    model = item._model  # noqa: SLF001 - the only place where the client keeps the dimension
    return Collection(
        id=str(item.id),
        name=item.name,
        metadata=item.metadata or {},
        dimension=model.dimension or 0,
        space=space_of(item.configuration_json),
        native=item,
    )
