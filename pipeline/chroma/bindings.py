"""The embedded engine without `import chromadb`: the Rust bindings, called as chromadb's own thin layer calls them.

chromadb takes most of a second to import, its bindings take 30 ms. They are not a public interface, so they are used
only when they look exactly like the version that was tested; otherwise the public client does the same, more slowly.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.chroma.config import DEFAULT_DATABASE, DEFAULT_TENANT
from pipeline.chroma.engine import HNSW, Collection, Page, space_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.chroma.engine import Metadata, Rows, Vectors

VERSION = "1.5.9"
_PAGE = 500
_SCOPE = (DEFAULT_TENANT, DEFAULT_DATABASE)
_CONFIGURATION = json.dumps({"hnsw": HNSW, "spann": None, "embedding_function": {"type": "legacy"}})
# Parameters of each method in the tested version.
_SHAPES = {
    "create_collection": "name configuration_json_str schema_str metadata get_or_create tenant database",
    "list_collections": "limit offset tenant database",
    "delete_collection": "name tenant database",
    "update_collection": "collection_id new_name new_metadata new_configuration_json_str",
    "count": "collection_id tenant database",
    "get": "collection_id ids where limit offset where_document include tenant database",
    "upsert": "collection_id ids embeddings metadatas documents uris tenant database",
    "delete": "collection_id ids where where_document limit tenant database",
    "query": "collection_id ids query_embeddings n_results where where_document include tenant database",
    "get_max_batch_size": "",
}


def unfamiliar() -> str:
    """Why the bindings cannot be used on this machine; "" when they can."""
    try:
        import chromadb_rust_bindings as rust  # type: ignore[import-untyped]  # compiled, without type information
    except ImportError as error:
        return f"chromadb's bindings cannot be imported ({error})"
    # Not from the bindings themselves: `get_version` imports chromadb. The folder of the tested version is one `stat` away.
    if not (Path(rust.__file__).parent.parent / f"chromadb-{VERSION}.dist-info").is_dir():
        import importlib.metadata

        version = importlib.metadata.version("chromadb")
        if version != VERSION:
            return f"chromadb is {version}, not {VERSION}"
    for method, shape in _SHAPES.items():
        signature = getattr(getattr(rust.Bindings, method, None), "__text_signature__", None) or ""
        names = [part.split("=")[0].strip() for part in signature.strip("()").split(",")]
        if [name for name in names if name not in ("$self", "/")] != shape.split():
            return f"`{method}` of chromadb's bindings is not the one of version {VERSION}"
    return ""


class BindingsEngine:
    """An embedded store opened through the bindings. path: its folder, which must exist."""

    kind = "bindings"

    def __init__(self, path: Path) -> None:
        import chromadb_rust_bindings as rust

        database = rust.SqliteDBConfig(
            hash_type=rust.MigrationHash.MD5,
            migration_mode=rust.MigrationMode.Apply,
            url=f"{path}/chroma.sqlite3",
        )
        self._rust: Any = rust.Bindings(
            allow_reset=False, sqlite_db_config=database, persist_path=str(path), hnsw_cache_size=_cache_size()
        )
        self.max_batch: int = self._rust.get_max_batch_size()

    def find(self, name: str) -> Collection | None:
        """A collection by name, out of the list: asking for a missing one would import chromadb for its exception."""
        return next((item for item in self._list() if item.name == name), None)

    def create(self, name: str, metadata: Metadata) -> Collection:
        """A new collection in cosine space without an embedding function."""
        return _collection(self._rust.create_collection(name, _CONFIGURATION, None, metadata, False, *_SCOPE))

    def names(self) -> list[str]:
        """The names of all collections."""
        return [item.name for item in self._list()]

    def remove(self, name: str) -> None:
        """Remove a collection with its rows."""
        self._rust.delete_collection(name, *_SCOPE)

    def annotate(self, collection: Collection, metadata: Metadata) -> None:
        """Replace a collection's metadata."""
        self._rust.update_collection(collection.id, None, metadata, None)

    def count(self, collection: Collection) -> int:
        """How many rows it has."""
        return int(self._rust.count(collection.id, *_SCOPE))

    def put(self, collection: Collection, rows: Rows) -> None:
        """Insert rows, or overwrite those of the same IDs."""
        vectors = rows.vectors.tolist()  # five times as fast as handing over the array
        self._rust.upsert(
            collection.id, list(rows.ids), vectors, list(rows.metadatas), list(rows.documents), None, *_SCOPE
        )

    def drop(self, collection: Collection, ids: Sequence[str]) -> None:
        """Remove rows; IDs that are not there are ignored."""
        self._rust.delete(collection.id, list(ids), None, None, None, *_SCOPE)

    def read(
        self, collection: Collection, include: Sequence[str], ids: Sequence[str] | None, limit: int | None, offset: int
    ) -> Page:
        """Rows by ID, or a page of all."""
        wanted = None if ids is None else list(ids)
        got = self._rust.get(collection.id, wanted, None, limit, offset, None, list(include), *_SCOPE)
        return Page(got.ids, got.metadatas or [], got.documents or [], got.embeddings or [])

    def query(self, collection: Collection, vector: Vectors, k: int) -> tuple[list[str], list[float]]:
        """The k nearest rows with their cosine distances, nearest first."""
        got = self._rust.query(collection.id, None, [vector.tolist()], k, None, None, ["distances"], *_SCOPE)
        return got.ids[0], got.distances[0]

    def close(self) -> None:
        """Let go of the files."""
        self._rust = None

    def _list(self) -> list[Collection]:
        found: list[Collection] = []
        while True:
            page = self._rust.list_collections(_PAGE, len(found), *_SCOPE)
            found += [_collection(item) for item in page]
            if len(page) < _PAGE:
                return found


def _collection(item: Any) -> Collection:
    return Collection(
        id=str(item.id),
        name=item.name,
        metadata=item.metadata or {},
        dimension=item.dimension or 0,
        space=space_of(item.configuration),
    )


def _cache_size() -> int:
    """How many open indexes may be kept, by chromadb's own rule: five files each."""
    if sys.platform == "win32":
        return 100
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 5
