"""Opening the databases of a data directory: what is damaged is told from what is merely locked, full or not ours to write."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether an error means that the file is no sound database. A lock, a full disk or a missing right does not."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def open_readonly(path: Path) -> sqlite3.Connection:
    """A connection that reads and leaves no trace, also in a folder that must not be written to. Raises sqlite3.Error.

    Without a write-ahead log beside it nobody is writing, and the file is read as it stands: sharing a log would leave files.
    """
    place = path.absolute().as_uri()
    if not path.with_name(f"{path.name}-wal").exists():
        return sqlite3.connect(f"{place}?immutable=1", uri=True, isolation_level=None)
    connection = sqlite3.connect(f"{place}?mode=ro", uri=True, isolation_level=None, timeout=30)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()  # the log cannot be shared without writing beside it
        connection = sqlite3.connect(f"{place}?immutable=1", uri=True, isolation_level=None)
    return connection
