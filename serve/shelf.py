"""What a selector may see of the index: candidates, pages of a SKILL.md, and which skills lie near it."""

from __future__ import annotations

import numpy as np

from serve import text_file
from serve.contract import Record
from serve.errors import ExitCode, OperatorError
from serve.query import Query
from serve.search import Answer, Row, Searcher
from serve.selection import Candidate, Page
from serve.snapshot import Snapshot

NEAR = 6  # skills named beside a page
NEAR_BUDGET = 0.1  # seconds that IWE is given to name them
NEAR_POOL = 4_000  # rows of a category that are compared at most


class SnapshotShelf:
    """The skills that one harness does not show itself, in whatever generation is current."""

    def __init__(self, searcher: Searcher, harness: str) -> None:
        self.searcher = searcher
        self.harness = harness

    def answer(self, query: str, limit: int) -> Answer:
        """The ranking for a query. Raises OperatorError for one that cannot be used."""
        return self.searcher.answer(Query(query, limit=limit, harness=self.harness))

    def search(self, query: str, limit: int) -> list[Candidate]:
        """The best skills for a query. Raises OperatorError for one that cannot be used."""
        return [candidate(row) for row in self.answer(query, limit).rows]

    def read(self, skill_id: str, offset: int = 0, limit: int = 12_000) -> Page:
        """Part of a skill's SKILL.md. Raises OperatorError for an ID that is not on the shelf or a file that is gone."""
        snapshot = self.searcher.live.current()
        record = self.record(snapshot, skill_id)
        whole = text_file.read(record).text
        start = min(max(offset, 0), len(whole))
        return Page(
            id=record.id,
            name=record.name,
            text=whole[start : start + max(limit, 0)],
            offset=start,
            total=len(whole),
            neighbours=self._near(snapshot, record),
        )

    def _near(self, snapshot: Snapshot, record: Record) -> tuple[str, ...]:
        """The skills beside one in the graph: as IWE says where it runs, else by category and meaning."""
        iwe = self.searcher.iwe
        linked = iwe.neighbours(record.id, NEAR, NEAR_BUDGET) if iwe is not None else []
        known = [(skill, row) for skill in linked if (row := snapshot.row_of(skill)) is not None]
        shown = tuple(skill for skill, row in known if self.shows(snapshot.record(row)))
        return shown or neighbours(snapshot, record, self.harness)

    def record(self, snapshot: Snapshot, skill_id: str) -> Record:
        """The record of an ID. Raises OperatorError for one that is not on the shelf."""
        row = snapshot.row_of(skill_id)
        record = None if row is None else snapshot.record(row)
        if record is None or not self.shows(record):
            raise OperatorError(
                "there is no such skill here", where=skill_id, next_step="search for one", code=ExitCode.USAGE
            )
        return record

    def shows(self, record: Record) -> bool:
        """Whether a skill is on the shelf: the harness does not show one of its name itself."""
        return not self.harness or self.harness not in record.native_in


def candidate(row: Row) -> Candidate:
    """A row of a ranking as a selector sees it."""
    record = row.record
    return Candidate(
        id=record.id,
        name=record.name,
        description=record.description,
        source=record.source,
        state=record.state,
        categories=record.categories,
        score=round(row.score, 6),
        ranks={name: place.rank for name, place in row.ranked.lanes.items()},
    )


def neighbours(snapshot: Snapshot, record: Record, harness: str, limit: int = NEAR) -> tuple[str, ...]:
    """The skills that share a category with one and mean most nearly the same, nearest first."""
    own = snapshot.row_of(record.id)
    if own is None or not record.categories:
        return ()
    rows = np.unique(np.concatenate([snapshot.facet_rows("category", name) for name in record.categories]))
    hidden = snapshot.facet_rows("native_in", harness) if harness else np.empty(0, dtype=np.uint32)
    rows = rows[(rows != own) & ~np.isin(rows, hidden)][:NEAR_POOL]
    likeness = snapshot.vectors[rows] @ snapshot.vectors[own]
    nearest = rows[np.lexsort((rows, -likeness))[:limit]]
    return tuple(snapshot.ids[int(row)] for row in nearest)
