"""The list of all projections of a data directory. It can be lost: the markers in the folders say the same.

Reading needs no lock. Writing happens under the lane's lock, in one transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from serve.projection.locks import locked
from serve.projection.names import key

_TIMEOUT = 20.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS projections (
  harness TEXT NOT NULL, folder TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, folder_key TEXT NOT NULL,
  original TEXT NOT NULL, package TEXT NOT NULL, seen TEXT NOT NULL, copied TEXT NOT NULL, paths TEXT NOT NULL,
  bytes INTEGER NOT NULL, skipped TEXT NOT NULL, projected_at REAL NOT NULL,
  PRIMARY KEY (harness, folder)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_id ON projections (harness, id);
CREATE INDEX IF NOT EXISTS by_key ON projections (harness, key);
CREATE INDEX IF NOT EXISTS by_folder_key ON projections (harness, folder_key);
CREATE TABLE IF NOT EXISTS loose (harness TEXT NOT NULL, stem TEXT NOT NULL, folder TEXT NOT NULL,
  PRIMARY KEY (harness, stem, folder)) WITHOUT ROWID;
PRAGMA user_version = 1;
"""
_VERSION = 1
_SELECT = "SELECT harness, folder, id, name, original, package, seen, copied, bytes, projected_at, paths, skipped FROM projections "
_INSERT = "INSERT INTO projections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_FORGET = (
    "DELETE FROM projections WHERE harness = ? AND folder = ?",
    "DELETE FROM loose WHERE harness = ? AND folder = ?",
)


class Row(NamedTuple):
    """One projection. name: under which the harness lists it.

    original: the folder that was copied. package: digest of what was copied. seen: the original's fingerprint, "" for unknown.
    copied: the copy's own, "" for unknown. paths: the copy's files. projected_at: seconds since the epoch.
    """

    harness: str
    folder: str
    id: str
    name: str
    original: str
    package: str
    seen: str
    copied: str
    bytes: int
    projected_at: float
    paths: tuple[str, ...]
    skipped: tuple[str, ...]


class Manifest:
    """An open manifest; a context manager. Raises sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, timeout=_TIMEOUT, isolation_level=None)
        try:
            if self._version() != _VERSION:
                self._create()
            # Losing the last rows with the power does no harm: the markers are on disk.
            self._connection.execute("PRAGMA synchronous = OFF")
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def _create(self) -> None:
        # SQLite does not wait for others when it begins a log, so this has a lock of its own.
        with locked(self.path.with_name(f".{self.path.name}.lock")):
            if self._version() != _VERSION:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.executescript(_SCHEMA)

    def check_writable(self) -> None:
        """Raises sqlite3.Error when no row can be written."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("ROLLBACK")

    def of_id(self, harness: str, skill_id: str) -> Row | None:
        """The projection of a skill in a lane, or None."""
        return self._one("WHERE harness = ? AND id = ? ORDER BY projected_at DESC", harness, skill_id)

    def of_folder(self, harness: str, folder: str) -> Row | None:
        """The projection in a folder of a lane, or None."""
        return self._one("WHERE harness = ? AND folder = ?", harness, folder)

    def rows(self, harness: str = "") -> list[Row]:
        """All projections of a lane, or of all lanes, in order."""
        if harness:
            return self._rows("WHERE harness = ? ORDER BY folder", harness)
        return self._rows("ORDER BY harness, folder")

    def folders(self, harness: str) -> set[str]:
        """The folders of a lane that are listed."""
        found = self._connection.execute("SELECT folder FROM projections WHERE harness = ?", (harness,))
        return {folder for (folder,) in found}

    def taken(self, harness: str, name: str, but: str) -> bool:
        """Whether another projection than the one of the ID `but` has a name or folder too much like `name`."""
        found = self._connection.execute(
            "SELECT 1 FROM projections WHERE harness = ?1 AND (key = ?2 OR folder_key = ?2) AND id <> ?3 LIMIT 1",
            (harness, key(name), but),
        )
        return found.fetchone() is not None

    def named(self, harness: str, names: Iterable[str], but: str) -> set[str]:
        """Those of the names under which another projection than that of `but` is listed, exactly so written."""
        found: set[str] = set()
        for name in names:
            pairs = self._connection.execute(
                "SELECT name, folder FROM projections WHERE harness = ?1 AND (key = ?2 OR folder_key = ?2) AND id <> ?3",
                (harness, key(name), but),
            )
            if any(name in pair for pair in pairs):
                found.add(name)
        return found

    def loose(self, harness: str, name: str, but: str) -> bool:
        """Whether another projection than that of the ID `but` has a loose Markdown file of that name."""
        found = self._connection.execute(
            "SELECT 1 FROM loose JOIN projections USING (harness, folder) WHERE harness = ? AND stem = ? AND id <> ? LIMIT 1",
            (harness, name, but),
        )
        return found.fetchone() is not None

    def put(self, row: Row, stems: Iterable[str] = ()) -> None:
        """Write a row in place of any other of the same folder or skill. stems: its loose Markdown files."""
        values = [
            *row[:4],
            key(row.name),
            key(row.folder),
            *row[4:8],
            "\0".join(row.paths),
            row.bytes,
            json.dumps(row.skipped),
            row.projected_at,
        ]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            for (folder,) in self._connection.execute(
                "SELECT folder FROM projections WHERE harness = ? AND id = ?", (row.harness, row.id)
            ).fetchall():
                self._forget(row.harness, folder)
            self._forget(row.harness, row.folder)
            self._connection.execute(_INSERT, values)
            self._connection.executemany(
                "INSERT OR IGNORE INTO loose VALUES (?, ?, ?)", [(row.harness, stem, row.folder) for stem in stems]
            )

    def remove(self, harness: str, folder: str) -> None:
        """Forget a projection."""
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._forget(harness, folder)

    def _forget(self, harness: str, folder: str) -> None:
        for statement in _FORGET:
            self._connection.execute(statement, (harness, folder))

    def _one(self, where: str, *values: str) -> Row | None:
        found = self._rows(where, *values)
        return found[0] if found else None

    def _rows(self, where: str, *values: str) -> list[Row]:
        return [
            Row._make((*row[:10], tuple(row[10].split("\0")), tuple(json.loads(row[11]))))
            for row in self._connection.execute(_SELECT + where, values)
        ]


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether an error means that the file is no sound database, rather than locked, full or not ours to write."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def discard(path: Path) -> None:
    """Remove a damaged manifest with its log."""
    for ending in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).unlink()
