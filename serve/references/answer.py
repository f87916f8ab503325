"""`retrieve_reference` from question to answer: rank sections, quote them from their files, say where they come from."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from serve import ranking
from serve.errors import ContractError, ExitCode, OperatorError
from serve.lanes import semantic
from serve.query_embedder import QueryEmbedder
from serve.ranking import Lane, Ranked
from serve.references import hit
from serve.references.contract import Section
from serve.references.current import File, Found
from serve.references.hit import Match
from serve.references.index import ReferenceIndex, opened
from serve.references.revision import Revisions
from serve.settings import ServeSettings
from serve.snapshot import Live, Snapshot
from serve.text import tokens

MAX_QUERY = 20_000
MAX_LIMIT = 20
MIN_CHARS, MAX_CHARS = 200, 200_000
FEW = 400  # characters that each hit gets before the better ones get more
UNRELATED = 0.2  # a section without any word of the query must be nearer than this
_RETRIES = 5
_NEXT = 'add a [[sources]] block with kind = "references" and the path of a folder of Markdown files, then run `retrieval build`'


class _Ranking(NamedTuple):
    """The best rows, the lanes, and the query's vector for likeness (None without the semantic lane)."""

    rows: list[Ranked]
    lanes: list[Lane]
    vector: npt.NDArray[np.float32] | None


class References:
    """Answers from the references of a data directory, following new generations. Callable from many threads at once.

    embedder, live: those of a `Searcher`, so that a process loads its model once; its own when left out.
    """

    def __init__(
        self, settings: ServeSettings, embedder: QueryEmbedder | None = None, live: Live | None = None
    ) -> None:
        self.live = live or Live(settings.data_dir)
        self.embedder = embedder or QueryEmbedder(settings.embedder)
        self._owned = embedder is None
        self.revisions = Revisions()
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._index: ReferenceIndex | None = None

    def close(self) -> None:
        """Let go of the model, unless it is somebody else's."""
        if self._owned:
            self.embedder.close()

    def answer(self, query: str, limit: int = 5, max_chars: int = 8_000) -> dict[str, Any]:
        """The best sections for a query, at most `limit` of them and `max_chars` characters of text together.

        Raises OperatorError for a query or a bound that cannot be used, and when there is no index.
        """
        begun = time.perf_counter()
        text = _checked(query, limit, max_chars)
        snapshot, index = self._open()
        if index is None:
            return {**_wrapper(query, snapshot, begun), "notes": ["no references are indexed"], "next": _NEXT}
        found = self._ranked(index, text, limit)
        return {
            **_wrapper(query, snapshot, begun),
            "results": self._hits(index, text, found, max_chars),
            "lanes": {lane.name: {"used": lane.hits is not None, "reason": lane.reason} for lane in found.lanes},
            "documents": index.info.documents,
            "sections": index.info.sections,
            "milliseconds": round((time.perf_counter() - begun) * 1000, 2),
            "notes": _notes(index, found),
            "next": "" if found.rows else "ask in other words, or look at `retrieval references info`",
        }

    def info(self) -> dict[str, Any]:
        """What is indexed: sources, documents, how they are cut, and by whom they are embedded. Raises OperatorError."""
        snapshot, index = self._open()
        embedder = snapshot.manifest.embedder
        common = {
            "generation": snapshot.generation,
            "age_seconds": round(max(0.0, time.time() - snapshot.published_at), 1),
            "model": {"kind": embedder.kind, "name": embedder.model, "digest": embedder.digest},
        }
        if index is None:
            return {**common, "documents": 0, "sections": 0, "sources": {}, "files": [], "next": _NEXT}
        info = msgspec.to_builtins(index.info)
        files = [msgspec.to_builtins(document) for document in index.documents()]
        for row in (*info["sources"].values(), *files):
            row["hash"] = f"blake3:{row.pop('digest')}"
        return {**common, **info, "files": files, "next": ""}

    def _open(self) -> tuple[Snapshot, ReferenceIndex | None]:
        for _attempt in range(_RETRIES):
            snapshot = self.live.current()
            with self._lock:
                if snapshot is self._snapshot:
                    return snapshot, self._index
                try:
                    self._index = opened(snapshot)
                except FileNotFoundError:
                    continue  # replaced and collected before it was opened: look again
                self._snapshot = snapshot
                return snapshot, self._index
        raise ContractError(
            "the published references cannot be opened", where=str(self.live.root), next_step="run `retrieval build`"
        )

    def _ranked(self, index: ReferenceIndex, text: str, limit: int) -> _Ranking:
        near, vector = self._semantic(index, text)
        lanes = [near, Lane(name="lexical", hits=index.lexical.search(text, ranking.POOL))]
        rows = ranking.rank(text, lanes, index.describe, limit=ranking.POOL)
        related = [item for item in rows if "lexical" in item.lanes or _cosine(index, item.row, vector) >= UNRELATED]
        return _Ranking(related[:limit], lanes, vector)

    def _semantic(self, index: ReferenceIndex, text: str) -> tuple[Lane, npt.NDArray[np.float32] | None]:
        """The semantic lane and the query's vector, or the reason why there is none."""
        if not len(index):
            return Lane(name="semantic", reason="no section is indexed"), None
        identity = msgspec.structs.replace(index.snapshot.manifest.embedder, dimension=index.info.dimension)
        try:
            vectors = self.embedder.vectors(identity, semantic.parts(text))
        except OperatorError as error:
            reason = f"{error.what}; {error.next_step}" if error.next_step else error.what
            return Lane(name="semantic", reason=reason), None
        return Lane(name="semantic", hits=semantic.search(index.vectors, vectors, ranking.POOL)), vectors[0]

    def _hits(self, index: ReferenceIndex, text: str, found: _Ranking, max_chars: int) -> list[dict[str, Any]]:
        asked = frozenset(tokens(text))
        files: dict[str, File] = {}
        looked = []
        for item in found.rows:
            section = index.section(item.row)
            looked.append((section, _match(index, item, text, asked, found.vector), *_look(section, files)))
        room = _shares([len(now.text) for _section, _match, _file, now in looked], max_chars)
        return [
            self._hit(section, match, file, now, size)
            for (section, match, file, now), size in zip(looked, room, strict=True)
        ]

    def _hit(self, section: Section, match: Match, file: File, now: Found, size: int) -> dict[str, Any]:
        try:
            return hit.make(section, file, now, _cut(now.text, size), match, self.revisions.of(section.file))
        except Exception as error:  # noqa: BLE001 - one bad hit must not cost the others
            return hit.failed(section, f"this hit could not be made ({type(error).__name__}: {error})", match)


def _look(section: Section, files: dict[str, File]) -> tuple[File, Found]:
    """The section's file, read once for all its hits, and where the section is in it."""
    try:
        file = files.get(section.document)
        if file is None:
            file = files[section.document] = File(section)
        return file, file.find(section)
    except Exception as error:  # noqa: BLE001 - as above
        file = File(section, f"the file cannot be read ({type(error).__name__}: {error})")
        return file, file.find(section)


def _match(
    index: ReferenceIndex, item: Ranked, text: str, asked: frozenset[str], vector: npt.NDArray[np.float32] | None
) -> Match:
    """Likeness: the share of the query's words that stand in the section, averaged with the cosine where there is one."""
    held = {found.term for found in index.lexical.explain(text, item.row)}
    likeness = len(held) / len(asked) if asked else 0.0
    if vector is not None:
        likeness = (likeness + max(0.0, _cosine(index, item.row, vector))) / 2
    return Match(item.score, min(likeness, 1.0), {name: place.rank for name, place in item.lanes.items()})


def _cosine(index: ReferenceIndex, row: int, vector: npt.NDArray[np.float32] | None) -> float:
    return 0.0 if vector is None else float(index.vectors[row] @ vector)


def _shares(sizes: Sequence[int], total: int) -> list[int]:
    """How many characters each text gets: a few for all of them, the rest to the first ones first."""
    least = min(FEW, total // max(len(sizes), 1))
    shares = [min(size, least) for size in sizes]
    left = total - sum(shares)
    for place, size in enumerate(sizes):
        more = min(size - shares[place], left)
        shares[place] += more
        left -= more
    return shares


def _cut(text: str, size: int) -> str:
    """At most `size` characters, ended with a line or a word where that loses little."""
    if len(text) <= size:
        return text
    kept = text[:size]
    end = max(kept.rfind("\n"), kept.rfind(" "))
    return kept[:end].rstrip() if end > size * 3 // 4 else kept


def _checked(query: str, limit: int, max_chars: int) -> str:
    text = " ".join(query.split())
    if not text:
        raise _unusable("the query is empty", "say in a few words what you want to know")
    if len(text) > MAX_QUERY:
        raise _unusable(f"the query has {len(text)} characters", f"use at most {MAX_QUERY}")
    if not 1 <= limit <= MAX_LIMIT:
        raise _unusable(f"the limit is {limit}", f"use 1 to {MAX_LIMIT}")
    if not MIN_CHARS <= max_chars <= MAX_CHARS:
        raise _unusable(f"max_chars is {max_chars}", f"use {MIN_CHARS} to {MAX_CHARS}")
    return text


def _wrapper(query: str, snapshot: Snapshot, begun: float) -> dict[str, Any]:
    return {
        "query": query,
        "results": [],
        "lanes": {},
        "generation": snapshot.generation,
        "age_seconds": round(max(0.0, time.time() - snapshot.published_at), 1),
        "documents": 0,
        "sections": 0,
        "milliseconds": round((time.perf_counter() - begun) * 1000, 2),
    }


def _notes(index: ReferenceIndex, found: _Ranking) -> list[str]:
    notes = []
    if not index.info.sections:
        notes.append("the sources of references hold no text that could be indexed")
    elif not found.rows:
        notes.append("no section has to do with the query")
    problems = sum(source.problem for source in index.info.sources.values())
    if problems:
        notes.append(f"{problems} files could not be indexed; `retrieval status --problems` lists them")
    return notes


def _unusable(what: str, next_step: str) -> OperatorError:
    return OperatorError(what, next_step=next_step, code=ExitCode.USAGE)
