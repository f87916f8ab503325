"""The vector store: one collection per embedder, its rows, and the stamp that says that it is complete."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, Self

from pipeline.chroma.config import belongs
from pipeline.chroma.engine import SPACE, Rows
from pipeline.chroma.faults import REBUILD, StoreDamagedError, StoreError, StoreUnfitError, translated
from pipeline.chroma.rows import check, ordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from pipeline.chroma.engine import Collection, Engine, Metadata, Vectors

ROW_KEY = "row_key"
STAMP = "stamp"
BATCH = 500  # rows per call: one transaction, and what a killed run may lose
PAGE = 2_000
SAMPLE = 20  # rows of a page that `check` asks for by their vectors
MISSES = 0.2  # the part of them that an approximate index may miss
SAME = 1e-3  # cosine distance up to which two vectors count as one
_KEYS_ONLY = ("metadatas",)
_WHOLE = ("metadatas", "documents", "embeddings")


class Backend(Protocol):
    """A mode: how its engine is opened, and what is done with files that can no longer be used."""

    where: str
    local: bool  # whether the files are ours
    notices: list[str]

    def open(self) -> Engine:
        """The engine of this mode."""

    def set_aside(self) -> str:
        """Move broken files out of the way; returns where they went, "" when there are none of ours."""

    def sweep(self) -> None:
        """Remove what removed collections left behind."""

    def probe(self, namespace: str, name: str) -> None:
        """Inspect a closed store of our own in another process. Raises StoreDamagedError."""


class Store:
    """An open store. Use it as a context manager; every error that leaves it is an OperatorError."""

    def __init__(self, backend: Backend, namespace: str, name: str) -> None:
        self.name = name
        self.where = backend.where
        self._backend = backend
        self._namespace = namespace
        self._collection: Collection | None = None
        self._open: Engine | None = None

    @property
    def engine(self) -> str:
        """What does the work: `bindings`, or `client` for chromadb's public client."""
        return self._engine.kind

    @property
    def notices(self) -> list[str]:
        """What an operator wants to know of this opening: a store set aside, the slower engine in use."""
        return self._backend.notices

    def collections(self) -> list[str]:
        """The names of this namespace's collections, of all embedders."""
        with translated(self.where):
            return sorted(name for name in self._engine.names() if belongs(name, self._namespace))

    def count(self) -> int:
        """How many rows are held."""
        with translated(self.where):
            return self._engine.count(self._collection) if self._collection else 0

    def held(self) -> dict[str, str]:
        """What is held: ID to row key, "" for a row without one. Read in pages."""
        found: dict[str, str] = {}
        while self._collection:
            with translated(self.where):
                page = self._engine.read(self._collection, _KEYS_ONLY, None, PAGE, len(found))
            for key, metadata in zip(page.ids, page.metadatas, strict=True):
                found[key] = str((metadata or {}).get(ROW_KEY, ""))
            if len(page.ids) < PAGE:
                break
        return found

    def check(self) -> None:
        """Test that rows have vectors and are found by them, which `held` would not notice. Raises StoreDamagedError.

        Call it before anything is read from a store that may have been left in the middle of a write. An embedded store is
        tested whole, in a process of its own, since a damaged index can end a process; of a server's rows a page is tested.
        """
        if self._collection is None:
            return
        if not self._backend.local:
            self.inspect(whole=False)
            return
        self.close()
        self._backend.probe(self._namespace, self.name)
        self.connect()

    def inspect(self, *, whole: bool) -> None:
        """What `check` does, in this process; with `whole` off the first page stands for all."""
        read = 0
        for page in self.rows():
            read += len(page)
            self._found_again(page)
            if not whole:
                return
        if read != self.count():
            raise StoreDamagedError(f"{self.count() - read} rows have no vector", where=self.where, next_step=REBUILD)

    def rows(self) -> Iterator[Rows]:
        """All rows in pages."""
        offset = 0
        while self._collection:
            page = self._read(None, PAGE, offset)
            if not len(page):
                return
            yield page
            offset += len(page)

    def fetch(self, ids: Sequence[str]) -> Rows:
        """The rows of `ids` in that order; those not held are left out. For the precision of vectors see Rows."""
        starts = range(0, len(ids), BATCH)
        return ordered([self._read(ids[at : at + BATCH], None, 0) for at in starts], ids)

    def query(self, vector: Vectors, k: int) -> tuple[list[str], list[float]]:
        """IDs of the k rows nearest to a float32 vector and their cosine distances (0 to 2), nearest first."""
        if not self._collection:
            return [], []
        with translated(self.where):
            return self._engine.query(self._collection, vector, k)

    def put(self, rows: Rows) -> None:
        """Write rows, in batches. Overwrites rows of the same IDs; every row must carry every metadata key.

        Raises EmbedderError for vectors with infinities or NaN, StoreUnfitError for another dimension than the held one.
        """
        check(rows)
        if not len(rows):
            return
        self._fits(rows.vectors.shape[1])
        collection = self._writing()
        size = min(BATCH, self._engine.max_batch)
        with translated(self.where):
            for at in range(0, len(rows), size):
                self._engine.put(collection, rows.slice(at, at + size))
        self._collection = replace(collection, dimension=rows.vectors.shape[1])

    def drop(self, ids: Sequence[str]) -> None:
        """Remove rows by ID; those not held are ignored."""
        if not ids or not self._collection:
            return
        collection = self._writing()
        size = min(BATCH, self._engine.max_batch)
        with translated(self.where):
            for at in range(0, len(ids), size):
                self._engine.drop(collection, ids[at : at + size])

    def stamp(self) -> str:
        """The digest of what the collection completely holds; "" while a write is unfinished."""
        return str(self._collection.metadata.get(STAMP, "")) if self._collection else ""

    def set_stamp(self, digest: str) -> None:
        """Say that everything named by `digest` is in. The last thing that a write does."""
        self._annotated({STAMP: digest})

    def retire(self) -> tuple[str, ...]:
        """Remove this namespace's collections of other embedders, once this one is complete; returns their names."""
        if not self.stamp():
            return ()
        old = tuple(name for name in self.collections() if name != self.name)
        self._remove(old)
        return old

    def start_over(self, error: StoreDamagedError) -> None:
        """Begin an empty collection in place of one that cannot be used; `notices` says what became of the old one.

        A damaged embedded store is set aside whole. A server, and a store whose files are sound, lose the collection.
        """
        said = f"the vector store was begun anew, because {error.what}"
        if self._backend.local and not isinstance(error, StoreUnfitError):
            self.close()
            said += f"; what it was is in {self._backend.set_aside()}"
        else:
            self._remove((self.name,))
            self.close()
        self.notices.append(said)
        self.connect()

    def connect(self) -> None:
        """Open the engine and look the collection up. Raises StoreUnfitError when that measures another distance."""
        with translated(self.where):
            self._open = self._backend.open()
            self._collection = self._open.find(self.name)
        if self._collection and self._collection.space not in ("", SPACE):
            what = f"the collection measures `{self._collection.space}` and not `{SPACE}`"
            raise StoreUnfitError(what, where=self.where, next_step=REBUILD)

    def close(self) -> None:
        """Let go of files and connections."""
        engine, self._open, self._collection = self._open, None, None
        if engine is not None:
            with translated(self.where):
                engine.close()

    def __enter__(self) -> Self:
        """The open store."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    @property
    def _engine(self) -> Engine:
        if self._open is None:
            raise StoreError("the store is closed", where=self.where)
        return self._open

    def _writing(self) -> Collection:
        """The collection, made when there is none, with no stamp: from here on it is unfinished."""
        collection = self._collection or self._annotated({STAMP: ""})
        return self._annotated({STAMP: ""}) if self.stamp() else collection

    def _annotated(self, metadata: Metadata) -> Collection:
        """The collection with this metadata, made when there is none."""
        with translated(self.where):
            if self._collection is None:
                self._collection = self._engine.create(self.name, metadata)
            else:
                self._engine.annotate(self._collection, metadata)
                self._collection = replace(self._collection, metadata=metadata)
        return self._collection

    def _found_again(self, page: Rows) -> None:
        """Ask for some rows by their vectors. The index is approximate, so a few may be missed."""
        sample = range(0, len(page), max(1, len(page) // SAMPLE))
        distances = [self.query(page.vectors[row], 1)[1] for row in sample]
        missed = sum(not near or near[0] > SAME for near in distances)
        if missed > len(sample) * MISSES:
            what = f"{missed} of {len(sample)} rows are not found by their own vectors"
            raise StoreDamagedError(what, where=self.where, next_step=REBUILD)

    def _fits(self, dimension: int) -> None:
        held = self._collection.dimension if self._collection else 0
        if held and held != dimension:
            what = f"the collection holds vectors of {held} numbers, the embedder gives {dimension}"
            raise StoreUnfitError(what, where=self.where, next_step=REBUILD)

    def _remove(self, names: Sequence[str]) -> None:
        with translated(self.where):
            for name in names:
                self._engine.remove(name)
            if names:
                self._backend.sweep()
        if self.name in names:
            self._collection = None

    def _read(self, ids: Sequence[str] | None, limit: int | None, offset: int) -> Rows:
        """Whole rows. Raises StoreDamagedError when one has no vector."""
        import numpy as np

        if self._collection is None:
            return ordered((), ())
        with translated(self.where):
            page = self._engine.read(self._collection, _WHOLE, ids, limit, offset)
        if any(vector is None for vector in page.vectors) or len(page.vectors) != len(page.ids):
            raise StoreDamagedError("some rows have no vector", where=self.where, next_step=REBUILD)
        vectors = np.asarray(page.vectors, dtype=np.float32).reshape(len(page.ids), -1 if page.ids else 0)
        return Rows(page.ids, vectors, page.metadatas, page.documents)
