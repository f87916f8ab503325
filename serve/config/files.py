"""Looks at the file system without ever raising anything but a ConfigError."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from serve.errors import ConfigError


def folder_fault(path: Path) -> str:
    """Why a path cannot be read as a folder, in words that follow "the folder"; "" when it can."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except (OSError, ValueError) as error:
        return f"cannot be reached: {getattr(error, 'strerror', None) or error}"
    return "" if S_ISDIR(mode) else "is not a folder"


def is_folder(path: Path) -> bool:
    """True for a folder, links followed."""
    return not folder_fault(path)


def is_file(path: Path) -> bool:
    """True for a regular file that can be reached, links followed."""
    try:
        return S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def names_in(folder: Path) -> list[str]:
    """The sorted names in a folder; none when there is no such folder."""
    if not is_folder(folder):
        return []
    try:
        return sorted(os.listdir(folder))  # names are wanted, in one call
    except OSError as error:
        raise ConfigError(
            f"the folder cannot be listed: {error.strerror or error}",
            where=str(folder),
            next_step="check its permissions",
        ) from error


def read_text(path: Path, largest: int, what: str) -> str:
    """The text of a UTF-8 file without byte order mark and carriage returns. `what` names it in errors."""
    try:
        if path.stat().st_size > largest:
            raise ConfigError(f"{what} is larger than {largest // 1024} KB", where=str(path), next_step="shorten it")
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{what} cannot be read: {error.strerror or error}",
            where=str(path),
            next_step="check its name and permissions",
        ) from error
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{what} is not UTF-8", where=f"{path}:{line}", next_step="save it as UTF-8") from error


def real(path: Path) -> Path:
    """The path with links resolved as far as they can be."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path
