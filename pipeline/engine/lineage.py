"""Lineage: for each skill and step, what last changed and in which run. `retrieval why` reads it.

Kept in SQLite beside the memo, one row per skill and step. It explains, it never decides: losing it changes no build.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from pipeline.engine.database import is_damaged, open_readonly

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Change(NamedTuple):
    """One step's last change of one skill. Digests are of the step's row; "" where there was none. ran: computed or reused."""

    id: str
    step: str
    run: str
    at: float
    ran: bool
    before: str
    after: str
    note: str


_SCHEMA = """CREATE TABLE IF NOT EXISTS change (
    id TEXT, step TEXT, run TEXT, at REAL, ran INTEGER, before TEXT, after TEXT, note TEXT, PRIMARY KEY (id, step)
) WITHOUT ROWID"""


class Lineage:
    """Where changes are recorded and looked up."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The open database. Raises sqlite3.Error."""
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(_SCHEMA)
        return connection

    def record(self, changes: Iterable[Change]) -> None:
        """Replace what is known of these skills and steps, in one transaction. A damaged file is begun anew: it only explains."""
        rows = list(changes)
        if not rows:
            return
        try:
            self._write(rows)
        except sqlite3.DatabaseError as error:
            if not is_damaged(error):
                raise
            self.close()
            self.path.unlink()
            self._write(rows)

    def _write(self, rows: list[Change]) -> None:
        self.connection.execute("BEGIN")
        self.connection.executemany("INSERT OR REPLACE INTO change VALUES (?,?,?,?,?,?,?,?)", rows)
        self.connection.execute("COMMIT")

    def of(self, skill: str) -> list[Change]:
        """The last change of each step for one skill, latest run first; none where they cannot be read. Writes nothing."""
        if not self.path.exists():
            return []
        try:
            with closing(open_readonly(self.path)) as connection:
                rows = connection.execute("SELECT * FROM change WHERE id = ? ORDER BY at DESC", (skill,)).fetchall()
        except sqlite3.DatabaseError as error:
            if not is_damaged(error):
                raise
            return []
        return [Change._make((*row[:4], bool(row[4]), *row[5:])) for row in rows]

    def close(self) -> None:
        """Close the database; it opens again when next needed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
