"""The one kind of failure that projecting has."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serve.errors import OperatorError

_REMEDIES = {
    errno.ENOSPC: "free some space and try again",
    errno.EDQUOT: "free some space and try again",
    errno.EACCES: "give this user the right to it, or name another data directory with RETRIEVAL_HOME",
    errno.EPERM: "give this user the right to it, or name another data directory with RETRIEVAL_HOME",
    errno.EROFS: "name a data directory that can be written to with RETRIEVAL_HOME",
    errno.EXDEV: "have the whole `projections` folder on one file system: a copy is put in place by renaming",
    errno.ENAMETOOLONG: "choose a data directory with a shorter path",
}


class ProjectionError(OperatorError):
    """A package was not copied into a lane. What lay in the lane before still lies there."""


def is_unwritable(error: OSError | sqlite3.Error) -> bool:
    """Whether an error means that something may be read at most, and not written."""
    if isinstance(error, OSError):
        return error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest says more exactly what it was
    return code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}


@contextmanager
def told(manifest: Path, *, reading: bool = False) -> Iterator[None]:
    """Makes what the system refuses in a block that changes or reads lanes into a ProjectionError with the path it is about."""
    wanted = "read" if reading else "written"
    try:
        yield
    except sqlite3.Error as error:
        what = f"cannot be {wanted}" if is_unwritable(error) else "cannot be used"
        closed = [path for path in (manifest, manifest.parent) if path.exists() and not os.access(path, os.W_OK)]
        raise ProjectionError(
            f"the list of projections {what}: {error}",
            where=str(closed[0] if closed else manifest),
            next_step=_REMEDIES[errno.EACCES] if is_unwritable(error) else "run `retrieval doctor`",
        ) from error
    except OSError as error:
        what = f"this path cannot be {wanted}" if is_unwritable(error) else "the system refused"
        where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(manifest.parent)
        raise ProjectionError(
            f"{what}: {(error.strerror or str(error)).lower()}",
            where=where,
            next_step=_REMEDIES.get(error.errno or 0, "run `retrieval doctor`"),
        ) from error


def refused(error: OSError, lane: Path) -> ProjectionError:
    """The error for what the system refused while a package was put into a lane."""
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(lane)
    return ProjectionError(
        f"the system refused the copy: {(error.strerror or str(error)).lower()}",
        where=where,
        next_step=_REMEDIES.get(error.errno or 0, "run `retrieval doctor`"),
    )
