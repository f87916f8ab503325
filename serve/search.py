"""Answering a query from the published snapshot: lanes, ranking, rows. Nothing here writes or locks anything."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from serve import ranking
from serve.contract import Record
from serve.embedder import EmbedderConfig
from serve.errors import OperatorError
from serve.lanes import semantic
from serve.lanes.hits import Hits, Mask
from serve.lanes.lexical import LexicalIndex
from serve.query import Query, checked, mask_of
from serve.query_embedder import QueryEmbedder
from serve.ranking import Lane, Ranked
from serve.snapshot import Live, Snapshot

if TYPE_CHECKING:
    from serve.lanes.iwe import IweLane

MAX_DESCRIBED = 1_500  # some 8 MB at most


class Row(NamedTuple):
    """One skill of an answer, with everything that made its score."""

    record: Record
    ranked: Ranked
    terms: tuple[tuple[str, float], ...]

    @property
    def score(self) -> float:
        """The fused score; 1 is the first place in every lane that took part, before the tie-breaker."""
        return self.ranked.score

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON prints it."""
        record, ranked = self.record, self.ranked
        shown = {
            **{key: getattr(record, key) for key in ("id", "name", "description", "source", "state")},
            "categories": list(record.categories),
            "tags": list(record.tags),
            "path": record.path,
            "score": round(ranked.score, 6),
            "base_score": round(ranked.base, 6),
            "lexical_score": round(ranked.lexical, 6),
            "ranks": {name: place.rank for name, place in ranked.lanes.items()},
            "scores": {name: round(place.score, 6) for name, place in ranked.lanes.items()},
            "shares": {name: round(place.share, 6) for name, place in ranked.lanes.items()},
            "duplicates": list(record.duplicates),
        }
        if self.terms:
            shown["terms"] = {term: round(score, 4) for term, score in self.terms}
        return shown

    def explanation(self) -> list[str]:
        """How the score came about, line by line; the shares add up to it."""
        lines = [
            f"{name}: rank {place.rank}, score {place.score:.4f}, adds {place.share:.4f}"
            for name, place in self.ranked.lanes.items()
        ]
        lines.append(
            f"query words in name, description and tags: {self.ranked.lexical:.3f}, adds {self.ranked.tie:.4f}"
        )
        if self.terms:
            lines.append("terms: " + ", ".join(f"{term} {score:.2f}" for term, score in self.terms))
        return lines


class LaneReport(NamedTuple):
    """Whether a lane took part, else why not."""

    used: bool
    reason: str


class Answer(NamedTuple):
    """An answer and where it comes from. total: skills in the index. published_at: seconds since the epoch."""

    query: Query
    rows: list[Row]
    lanes: dict[str, LaneReport]
    generation: str
    published_at: float
    total: int
    milliseconds: float

    def age(self) -> str:
        """How long ago the index was published, in words."""
        seconds = max(0.0, time.time() - self.published_at)
        for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
            if seconds >= 2 * size:
                return f"{int(seconds // size)} {unit}"
        return f"{int(seconds)} s"

    def as_dict(self) -> dict[str, Any]:
        """The answer as JSON prints it."""
        return {
            "query": self.query.text,
            "results": [row.as_dict() for row in self.rows],
            "lanes": {name: lane._asdict() for name, lane in self.lanes.items()},
            "generation": self.generation,
            "age_seconds": round(max(0.0, time.time() - self.published_at), 1),
            "skills": self.total,
            "milliseconds": round(self.milliseconds, 2),
        }


class _Opened(NamedTuple):
    """What is prepared once per snapshot. described: texts of rows that were looked at, kept because they come up again."""

    snapshot: Snapshot
    lexical: LexicalIndex
    described: dict[int, ranking.Described]

    def describe(self, row: int) -> ranking.Described:
        """The texts of a row that the tie-breaker reads."""
        found = self.described.get(row)
        if found is None:
            record = self.snapshot.record(row)
            found = ranking.Described(record.name, record.description, record.tags)
            if len(self.described) >= MAX_DESCRIBED:
                self.described.clear()
            self.described[row] = found
        return found


class Searcher:
    """Answers queries from a data directory, following new generations. Callable from many threads at once.

    embedder: how this process would embed; a snapshot made by another one is answered without the semantic lane.
    token: for a Chroma server, if the store is one. wait: whether the first queries wait for the model; without it they
    are answered by the other lanes and say so, while the model is loaded beside them. iwe: a running IWE lane, if there is
    to be one; the caller closes it.
    """

    def __init__(
        self,
        data_dir: Path,
        embedder: EmbedderConfig,
        token: str = "",
        *,
        wait: bool = True,
        iwe: IweLane | None = None,
    ) -> None:
        self.live = Live(data_dir)
        self.embedder = QueryEmbedder(embedder, wait=wait)
        self.token = token
        self.iwe = iwe
        self._opening = threading.Lock()
        self._opened: _Opened | None = None

    def warm(self) -> None:
        """Open the index and begin to load the model. Raises OperatorError when there is no index that can be used."""
        identity = self._open().snapshot.manifest.embedder
        self.embedder.require(identity)
        self.embedder.begin(identity.dimension)

    def require_embedder(self) -> None:
        """Raise ContractError when the configured embedder is not the one that made the index, NoIndexError without one."""
        self.embedder.require(self.live.current().manifest.embedder)

    def close(self) -> None:
        """Let go of the model."""
        self.embedder.close()

    def answer(self, query: Query) -> Answer:
        """The best skills for a query. Raises OperatorError for a query or filter that cannot be used, or no index."""
        begun = time.perf_counter()
        text = checked(query)
        opened = self._open()
        snapshot = opened.snapshot
        mask = mask_of(snapshot, query)
        lanes = self._lanes(opened, text, mask)
        ranked = ranking.rank(text, lanes, opened.describe, limit=query.limit)
        rows = [
            Row(snapshot.record(item.row), item, _terms(opened.lexical, text, item.row) if query.explain else ())
            for item in ranked
        ]
        return Answer(
            query,
            rows,
            {lane.name: LaneReport(lane.hits is not None, lane.reason) for lane in lanes},
            snapshot.generation,
            snapshot.published_at,
            len(snapshot),
            (time.perf_counter() - begun) * 1000,
        )

    def _lanes(self, opened: _Opened, text: str, mask: Mask | None) -> list[Lane]:
        """What each lane finds. IWE searches in its own process while the others do."""
        snapshot, iwe = opened.snapshot, self.iwe
        begun = iwe.begin(text, ranking.POOL) if iwe else None
        lanes = [
            self._semantic(snapshot, text, mask),
            Lane(name="lexical", hits=opened.lexical.search(text, ranking.POOL, mask)),
        ]
        if iwe and begun:
            lanes.append(iwe.end(begun, snapshot, mask))
        return lanes

    def _open(self) -> _Opened:
        opened, snapshot = self._opened, self.live.current()
        if opened is not None and opened.snapshot is snapshot:
            return opened
        with self._opening:  # one thread prepares a new generation, the others use what it made
            snapshot = self.live.current()
            if self._opened is None or self._opened.snapshot is not snapshot:
                self._opened = _Opened(snapshot, LexicalIndex(snapshot.lexical), {})
            return self._opened

    def _semantic(self, snapshot: Snapshot, text: str, mask: Mask | None) -> Lane:
        """The semantic lane's hits, or the reason why there are none: never a silent gap."""
        try:
            vectors = self.embedder.vectors(snapshot.manifest.embedder, semantic.parts(text))
            return Lane(name="semantic", hits=self._nearest(snapshot, vectors, mask))
        except OperatorError as error:
            return Lane(name="semantic", reason=f"{error.what}; {error.next_step}" if error.next_step else error.what)

    def _nearest(self, snapshot: Snapshot, vectors: npt.NDArray[np.float32], mask: Mask | None) -> Hits:
        if snapshot.manifest.store.mode == "embedded":
            return semantic.search(snapshot.vectors, vectors, ranking.POOL, mask)
        from serve.lanes import chroma  # only who ranks through a server pays for the HTTP client

        return chroma.search(snapshot, vectors, ranking.POOL, mask, self.token)


def _terms(lexical: LexicalIndex, text: str, row: int) -> tuple[tuple[str, float], ...]:
    return tuple((item.term, item.score) for item in lexical.explain(text, row)[:12])
