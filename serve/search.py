"""Answering a query from the published snapshot: lanes, ranking, rows. Nothing here writes or locks anything."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from serve import ranking
from serve.contract import Record
from serve.embedder import Embedder, EmbedderConfig, open_embedder, require_same_space
from serve.errors import ExitCode, OperatorError
from serve.lanes import semantic
from serve.lanes.hits import Hits, Mask
from serve.lanes.lexical import LexicalIndex
from serve.ranking import Lane, Ranked
from serve.snapshot import Live, Snapshot

MAX_QUERY = 20_000
MAX_LIMIT = 200
MAX_DESCRIBED = 4_000  # some 20 MB at most
_LISTS = ("source", "category", "state")


class Query(msgspec.Struct, frozen=True, kw_only=False):
    """A question. Empty filters let everything through; harness leaves out what that harness shows itself."""

    text: str
    limit: int = 8
    source: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    harness: str = ""
    explain: bool = False

    @classmethod
    def of(cls, value: object, defaults: dict[str, Any]) -> Query:
        """A query from JSON: an object with `query` and any of the filters (a list or one word)."""
        if not isinstance(value, dict) or not isinstance(value.get("query"), str):
            raise _unusable("a JSON query needs a text field `query`", 'write {"query": "…"}')
        given = {key: item for key, item in value.items() if key != "query"}
        unknown = sorted(given.keys() - {*cls.__struct_fields__} | given.keys() & {"text"})
        if unknown:
            raise _unusable(f"a query has no field `{unknown[0]}`", f"use {', '.join(cls.__struct_fields__[1:])}")
        given.update({key: [given[key]] for key in _LISTS if isinstance(given.get(key), str)})
        try:
            return msgspec.convert({**defaults, **given, "text": value["query"]}, cls)
        except msgspec.ValidationError as error:
            raise _unusable(f"the query cannot be read: {error}", "see `retrieval search --help`") from error


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
    """Answers queries from a data directory, following new generations. The model is loaded at the first query.

    embedder: how this process would embed; a snapshot made by another one is answered without the semantic lane.
    token: for a Chroma server, if the store is one.
    """

    def __init__(self, data_dir: Path, embedder: EmbedderConfig, token: str = "") -> None:
        self.live = Live(data_dir)
        self.config = embedder
        self.token = token
        self._embedder: Embedder | None = None
        self._opened: _Opened | None = None

    def answer(self, query: Query) -> Answer:
        """The best skills for a query. Raises OperatorError for a query or filter that cannot be used, or no index."""
        begun = time.perf_counter()
        text = _checked(query)
        opened = self._open()
        snapshot = opened.snapshot
        mask = _mask(snapshot, query)
        lanes = [
            self._semantic(snapshot, text, mask),
            Lane(name="lexical", hits=opened.lexical.search(text, ranking.POOL, mask)),
        ]
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

    def _open(self) -> _Opened:
        snapshot = self.live.current()
        if self._opened is None or self._opened.snapshot is not snapshot:
            self._opened = _Opened(snapshot, LexicalIndex(snapshot.lexical), {})
        return self._opened

    def _semantic(self, snapshot: Snapshot, text: str, mask: Mask | None) -> Lane:
        """The semantic lane's hits, or the reason why there are none: never a silent gap."""
        try:
            model = self._model(snapshot.manifest.embedder.dimension)
            require_same_space(snapshot.manifest.embedder, model.identity)
            vectors = np.stack([model.query(part) for part in semantic.parts(text)])
            return Lane(name="semantic", hits=self._nearest(snapshot, vectors, mask))
        except OperatorError as error:
            return Lane(name="semantic", reason=f"{error.what}; {error.next_step}" if error.next_step else error.what)

    def _nearest(self, snapshot: Snapshot, vectors: npt.NDArray[np.float32], mask: Mask | None) -> Hits:
        if snapshot.manifest.store.mode == "embedded":
            return semantic.search(snapshot.vectors, vectors, ranking.POOL, mask)
        from serve.lanes import chroma  # only who ranks through a server pays for the HTTP client

        return chroma.search(snapshot, vectors, ranking.POOL, mask, self.token)

    def _model(self, dimension: int) -> Embedder:
        """The embedder, opened once. Told the snapshot's dimension, an endpoint is not asked for it before the first query."""
        if self._embedder is None:
            told = None if self.config.kind == "builtin" else dimension or None
            self._embedder = open_embedder(
                msgspec.structs.replace(self.config, dimension=self.config.dimension or told)
            )
        return self._embedder


def _checked(query: Query) -> str:
    text = " ".join(query.text.split())
    if not text:
        raise _unusable("the query is empty", "say in a few words what you need")
    if len(text) > MAX_QUERY:
        raise _unusable(f"the query has {len(text)} characters", f"use at most {MAX_QUERY}")
    if not 1 <= query.limit <= MAX_LIMIT:
        raise _unusable(f"the limit is {query.limit}", f"use 1 to {MAX_LIMIT}")
    return text


def _mask(snapshot: Snapshot, query: Query) -> Mask | None:
    """Rows that the filters let through; None when there is no filter. An unknown value is an error, not an empty answer."""
    mask: Mask | None = None
    for facet in _LISTS:
        values: tuple[str, ...] = getattr(query, facet)
        if not values:
            continue
        known = snapshot.facet(facet)
        chosen = np.zeros(len(snapshot), dtype=bool)
        for value in values:
            if value not in known:
                names = ", ".join(sorted(known)[:60]) or "(none)"
                raise _unusable(f"no indexed skill has the {facet} `{value}`", f"use one of: {names}")
            chosen[known[value]] = True
        mask = chosen if mask is None else mask & chosen
    if query.harness:
        native = snapshot.facet_rows("native_in", query.harness)
        if len(native):
            mask = np.ones(len(snapshot), dtype=bool) if mask is None else mask
            mask[native] = False
    return mask


def _terms(lexical: LexicalIndex, text: str, row: int) -> tuple[tuple[str, float], ...]:
    return tuple((item.term, item.score) for item in lexical.explain(text, row)[:12])


def _unusable(what: str, next_step: str) -> OperatorError:
    return OperatorError(what, next_step=next_step, code=ExitCode.USAGE)
