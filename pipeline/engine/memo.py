"""The memo: results of steps kept by what made them, so that nothing is computed twice.

One SQLite file, one table a step. Rows are committed in small batches, so a killed run loses at most one batch. Each value
carries a checksum over its key: a damaged row is a miss, never a wrong answer. The memo is a cache: losing it costs time only.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from blake3 import blake3

from pipeline.engine import faults
from pipeline.engine.database import is_damaged, open_readonly

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_CHECK = 8
_FORM = b"plain-1"
_CHUNK = 500
STEPS = ("scan", "categorize", "descriptor", "terms", "embed", "section")


class Memo:
    """Values of steps by key. Not for use by several threads at once.

    damaged: rows whose checksum failed since opening. moved_aside: where a file that was no database went, if it did.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        self.moved_aside: Path | None = None
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The open database; a file that is no sound database is moved aside and a new one begun. Raises sqlite3.Error."""
        if self._connection is None:
            try:
                self._connection = self._open()
            except sqlite3.DatabaseError as error:
                if not is_damaged(error):
                    raise
                self.moved_aside = self.path.with_suffix(".damaged")
                self.path.replace(self.moved_aside)
                self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        self._create(connection)
        return connection

    @staticmethod
    def _create(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for step in STEPS:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {step} (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
        connection.execute("COMMIT")

    def get(self, step: str, keys: Sequence[str]) -> dict[str, bytes]:
        """The values held for `keys`; what is missing or damaged is left out."""
        found: dict[str, bytes] = {}
        for start in range(0, len(keys), _CHUNK):
            wanted = [bytes.fromhex(key) for key in keys[start : start + _CHUNK]]
            marks = ",".join("?" * len(wanted))
            try:
                rows = self.connection.execute(
                    f"SELECT key, value FROM {step} WHERE key IN ({marks})", wanted
                ).fetchall()
            except sqlite3.DatabaseError:
                self.damaged += len(wanted)
                continue
            for key, value in rows:
                plain = _unpack(key, value)
                if plain is None:
                    self.damaged += 1
                else:
                    found[key.hex()] = plain
        return found

    def has(self, step: str, keys: Sequence[str]) -> set[str]:
        """Which of `keys` have a value, without reading the values."""
        held: set[str] = set()
        for start in range(0, len(keys), _CHUNK):
            wanted = [bytes.fromhex(key) for key in keys[start : start + _CHUNK]]
            marks = ",".join("?" * len(wanted))
            rows = self.connection.execute(f"SELECT key FROM {step} WHERE key IN ({marks})", wanted)
            held.update(key.hex() for (key,) in rows)
        return held

    def put(self, step: str, items: Iterable[tuple[str, bytes]]) -> None:
        """Keep values, all of them or none: one transaction."""
        faults.reach(f"memo:{step}:before")
        rows = []
        for key, value in items:
            raw_key = bytes.fromhex(key)
            rows.append((raw_key, _pack(raw_key, value)))
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(f"INSERT OR REPLACE INTO {step} (key, value) VALUES (?, ?)", rows)
            faults.reach(f"memo:{step}:inside")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        faults.reach(f"memo:{step}:after")

    def close(self) -> None:
        """Close the database; it opens again when next needed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class ReadMemo(Memo):
    """A memo that is only read: nothing is created, moved or written. A damaged one holds nothing."""

    def _open(self) -> sqlite3.Connection:
        return open_readonly(self.path)

    def get(self, step: str, keys: Sequence[str]) -> dict[str, bytes]:
        """The values held for `keys`."""
        return super().get(step, keys) if self._readable() else {}

    def has(self, step: str, keys: Sequence[str]) -> set[str]:
        """Which of `keys` have a value."""
        return super().has(step, keys) if self._readable() else set()

    def _readable(self) -> bool:
        if self._connection is None:
            try:
                self._connection = self._open()
                self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.DatabaseError as error:
                if not is_damaged(error):
                    raise
                self.damaged += 1
                return False
        return True


def _pack(key: bytes, value: bytes) -> bytes:
    # Not compressed: that takes longer than writing the rest.
    return _check(key, value) + value


def _unpack(key: bytes, packed: bytes) -> bytes | None:
    check, value = packed[:_CHECK], packed[_CHECK:]
    return value if _check(key, value) == check else None


def _check(key: bytes, value: bytes) -> bytes:
    """Covers the form in which values are kept too: what was kept in another form is a miss."""
    return blake3(_FORM + key + value).digest(length=_CHECK)
