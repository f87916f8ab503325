"""What the store needs from Chroma, whichever way it is spoken to: the operations on collections and their rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # numpy costs a build with nothing to do a quarter of its time
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

Metadata = dict[str, Any]

SPACE = "cosine"
# How many changes HNSW keeps outside its files. Each opening process applies them again: at Chroma's own 1,000 that
# costs every small build up to a third of a second, and an update after a large one in the same process four seconds.
SYNC_THRESHOLD = 200
HNSW = {"space": SPACE, "sync_threshold": SYNC_THRESHOLD}


@dataclass(frozen=True)
class Rows:
    """Rows of a collection. vectors: float32 [rows, dimension]; metadatas: the same keys in each; all equally long.

    A vector read back has length 1 (the cosine space keeps no other) and may differ by rounding, up to 1e-6 a number.
    """

    ids: Sequence[str]
    vectors: Vectors
    metadatas: Sequence[Metadata]
    documents: Sequence[str]

    def __len__(self) -> int:
        """How many rows."""
        return len(self.ids)

    def slice(self, start: int, stop: int) -> Rows:
        """Some of the rows."""
        return Rows(
            self.ids[start:stop], self.vectors[start:stop], self.metadatas[start:stop], self.documents[start:stop]
        )


@dataclass(frozen=True)
class Collection:
    """A collection as it was when it was looked up. dimension: 0 before its first vector; space: "" when not told.

    native: the public client's own object, for the engine that has one.
    """

    id: str
    name: str
    metadata: Mapping[str, Any]
    dimension: int
    space: str
    native: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Page:
    """What a read gave, in the order Chroma gave it. Parts that were not asked for are empty."""

    ids: list[str]
    metadatas: list[Metadata]
    documents: list[str]
    vectors: Any


class Engine(Protocol):
    """One way of speaking to Chroma. Its methods raise what Chroma raises; `Store` translates."""

    kind: str  # bindings or client
    max_batch: int  # rows that one call may carry

    def find(self, name: str) -> Collection | None:
        """A collection by name."""

    def create(self, name: str, metadata: Metadata) -> Collection:
        """A new collection in cosine space without an embedding function."""

    def names(self) -> list[str]:
        """The names of all collections."""

    def remove(self, name: str) -> None:
        """Remove a collection with its rows."""

    def annotate(self, collection: Collection, metadata: Metadata) -> None:
        """Replace a collection's metadata."""

    def count(self, collection: Collection) -> int:
        """How many rows it has."""

    def put(self, collection: Collection, rows: Rows) -> None:
        """Insert rows, or overwrite those of the same IDs."""

    def drop(self, collection: Collection, ids: Sequence[str]) -> None:
        """Remove rows; IDs that are not there are ignored."""

    def read(
        self, collection: Collection, include: Sequence[str], ids: Sequence[str] | None, limit: int | None, offset: int
    ) -> Page:
        """Rows by ID, or a page of all."""

    def query(self, collection: Collection, vector: Vectors, k: int) -> tuple[list[str], list[float]]:
        """The k nearest rows with their cosine distances, nearest first."""

    def close(self) -> None:
        """Let go of files and connections."""


def space_of(configuration: Mapping[str, Any] | None) -> str:
    """The distance of a collection's configuration, whichever index it has; "" when it does not say."""
    for index in ("hnsw", "spann"):
        part = (configuration or {}).get(index)
        if part and part.get("space"):
            return str(part["space"])
    return ""
