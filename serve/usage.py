"""The usage record: which query was offered what and what was chosen. A local file that nobody but its owner reads.

Each record is one small transaction that a killed process cannot lose, without waiting for the disk. Whatever goes wrong here
is a note to the answer and never its failure.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from serve.errors import OperatorError
from serve.usage_rows import Event, Row, packed, unpacked

__all__ = ["FILE", "Event", "Recorded", "Row", "UsageLog"]

FILE = "usage.sqlite3"
FORMAT = 1
BUSY = 0.5  # seconds: an answer waits no longer for other processes that write
_OPENING = 20  # tries to open a file that another process is just making
_EACH = 64  # records of a process between two looks at the size of the file
_SPARE = 10  # a tenth of the rows that are kept may be there in excess, and goes at once

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS queries (
    number INTEGER PRIMARY KEY AUTOINCREMENT, query_id TEXT NOT NULL UNIQUE, at REAL NOT NULL, harness TEXT NOT NULL,
    tool TEXT NOT NULL, query TEXT NOT NULL, lanes TEXT NOT NULL, generation TEXT NOT NULL, candidates TEXT NOT NULL,
    chosen TEXT NOT NULL, selector TEXT NOT NULL, reason TEXT NOT NULL, failed INTEGER NOT NULL, milliseconds REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS queries_at ON queries (at);
PRAGMA user_version = {FORMAT};
"""
_INSERT = """
INSERT INTO queries (query_id, at, harness, tool, query, lanes, generation, candidates, chosen, selector, reason, failed,
    milliseconds) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SELECT = """
SELECT query_id, at, harness, tool, query, lanes, generation, candidates, chosen, selector, reason, failed, milliseconds
    FROM queries WHERE at >= ? ORDER BY number
"""
# What SQLite calls a file that it cannot read as a database: SQLITE_CORRUPT and SQLITE_NOTADB.
_DAMAGED = frozenset({11, 26})


class Recorded(NamedTuple):
    """query_id: names the record, "" when there is none. note: what the asker should know, "" when all went well."""

    query_id: str = ""
    note: str = ""


class UsageLog:
    """The record in a data directory. Switched off it makes no file. May be used by many threads and processes at once."""

    def __init__(self, data_dir: Path, enabled: bool = True, keep_rows: int = 20_000) -> None:
        self.path = data_dir / FILE
        self.enabled = enabled
        self.keep_rows = max(1, keep_rows)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._records = 0

    def record(self, event: Event) -> Recorded:
        """Keep a query. Never raises for anything about the file."""
        if not self.enabled:
            return Recorded()
        query_id = secrets.token_hex(8)
        row = packed(query_id, time.time(), event)
        note = ""
        with self._lock:
            try:
                try:
                    self._write(row)
                except sqlite3.DatabaseError as error:
                    if not _is_damaged(error):
                        raise
                    note = self._move_aside(error)
                    self._write(row)
            except (OSError, sqlite3.Error, OperatorError) as error:
                self._shut()
                return Recorded(note=f"this query is not in the usage record: {_said(error)}")
        return Recorded(query_id, note)

    def rows(self, since: float = 0.0) -> Iterator[Row]:
        """The records from a time on (seconds since the epoch), oldest first; none without a file. Raises OperatorError."""
        if self.path.is_file():
            with _reading(self.path) as connection:
                for row in connection.execute(_SELECT, (since,)):
                    yield unpacked(row)

    def state(self) -> dict[str, Any]:
        """Whether it is on, how much it holds and since when. Raises OperatorError when it cannot be read."""
        shown = {"enabled": self.enabled, "path": str(self.path), "rows": 0, "oldest": None, "bytes": 0}
        if not self.path.is_file():
            return shown
        with _reading(self.path) as connection:
            count, oldest = connection.execute("SELECT count(*), min(at) FROM queries").fetchone()
        return {**shown, "rows": count, "oldest": oldest, "bytes": self.path.stat().st_size}

    def close(self) -> None:
        """Let go of the file. A record made later opens it again."""
        with self._lock:
            self._shut()

    def _write(self, row: tuple[object, ...]) -> None:
        connection = self._open()
        connection.execute(_INSERT, row)
        if self._records % _EACH == 0:
            self._trim(connection)
        self._records += 1

    def _trim(self, connection: sqlite3.Connection) -> None:
        """Drop the oldest when a tenth more are there than are kept. Numbers have no gaps but at the start."""
        first, last = connection.execute("SELECT min(number), max(number) FROM queries").fetchone()
        if last - first + 1 >= self.keep_rows + max(1, self.keep_rows // _SPARE):
            connection.execute("DELETE FROM queries WHERE number <= ?", (last - self.keep_rows,))

    def _open(self) -> sqlite3.Connection:
        """The open file, made if there is none. Another is opened when this one was moved or removed."""
        if self._connection is not None:
            if _inode(self.path) == self._inode:
                return self._connection
            self._shut()
        if not self.path.parent.is_dir():
            raise OperatorError("there is no data directory")
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.name == "posix" and os.fstat(descriptor).st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
        self._inode = _inode(self.path)
        self._connection = _connected(self.path)
        return self._connection

    def _shut(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def _move_aside(self, error: sqlite3.DatabaseError) -> str:
        """Put a damaged file out of the way, unless another process has done so. Returns what to say of it."""
        from serve.projection.locks import locked

        self._shut()
        with locked(self.path.with_name("usage.lock"), BUSY):
            if not _still_damaged(self.path):
                return ""
            aside = self.path.with_name(
                f"usage-damaged-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}.sqlite3"
            )
            self.path.rename(aside)
            for end in ("-wal", "-shm"):  # they belong to what was moved, and would be played into the new file
                self.path.with_name(FILE + end).unlink(missing_ok=True)
        return f"the usage record was damaged ({error}) and begun anew; what there was is {aside}"


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, open for reading, for the length of a block. Raises OperatorError when it cannot be read."""
    connection = None
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY)
        _refuse_newer(connection, path)
        yield connection
    except (sqlite3.Error, msgspec.MsgspecError) as error:
        remedy = "move it away; it is begun anew"
        raise OperatorError(f"the usage record cannot be read: {error}", where=str(path), next_step=remedy) from error
    finally:
        if connection is not None:
            connection.close()


def _connected(path: Path) -> sqlite3.Connection:
    """An open database with its table. Many processes may make it at the same moment."""
    for attempt in range(_OPENING):
        connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY, check_same_thread=False)
        try:
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
            _refuse_newer(connection, path)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA journal_size_limit = 1048576")
        except sqlite3.OperationalError as error:
            connection.close()
            if "locked" not in str(error) or attempt + 1 == _OPENING:
                raise
            time.sleep(0.005 * (1 + secrets.randbelow(4)))
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise AssertionError("the loop returns or raises")


def _refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > FORMAT:
        raise OperatorError(
            f"the usage record has format {found}, this program knows {FORMAT}",
            where=str(path),
            next_step="use the version of Retrieval that made it, or move it away",
        )


def _still_damaged(path: Path) -> bool:
    try:
        connection = sqlite3.connect(path, timeout=BUSY)
        try:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        return _is_damaged(error)


def _is_damaged(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode & 0xFF in _DAMAGED if hasattr(error, "sqlite_errorcode") else False


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _said(error: Exception) -> str:
    if isinstance(error, OperatorError):
        return error.what
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
