"""Putting a folder in place in one step: exchanging two folders, and renaming without replacing anything.

Linux (renameat2) and macOS (renamex_np) do both in one system call. Where a system or file system cannot exchange, the old
folder is moved aside and the new one renamed into its place: for the time between these two renames, some microseconds, the
folder is missing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

_AT_FDCWD = -100
_NO_REPLACE, _EXCHANGE = (4, 2) if sys.platform == "darwin" else (1, 2)
_CANNOT = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
Rename = Callable[[Path, Path, int], None]


def exchange(new: Path, place: Path, aside: Path) -> Path:
    """Put the folder `new` where the folder `place` is. Returns where the old one is now: at `new`, or at `aside`.

    All three on one file system; `aside` must not exist. Raises OSError, everything being as it was.
    """
    rename = system_rename()
    if rename is not None:
        try:
            rename(new, place, _EXCHANGE)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
        else:
            return new
    os.rename(place, aside)
    try:
        os.rename(new, place)
    except OSError:
        os.rename(aside, place)
        raise
    return aside


def put(new: Path, place: Path) -> None:
    """Rename a folder to a name that is free. Raises FileExistsError where it is not, OSError."""
    rename = system_rename()
    if rename is not None:
        try:
            rename(new, place, _NO_REPLACE)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
        else:
            return
    if os.path.lexists(place):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
    os.rename(new, place)


@cache
def system_rename() -> Rename | None:
    """The system's rename with flags, or None where there is none."""
    if sys.platform not in {"linux", "darwin"}:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    function = getattr(library, "renamex_np" if sys.platform == "darwin" else "renameat2", None)
    if function is None:
        return None

    def rename(old: Path, new: Path, flags: int) -> None:
        source, target = os.fsencode(old), os.fsencode(new)
        if sys.platform == "darwin":
            result = function(source, target, ctypes.c_uint(flags))
        else:
            result = function(_AT_FDCWD, source, _AT_FDCWD, target, ctypes.c_uint(flags))
        if result:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(old), None, str(new))

    return rename
