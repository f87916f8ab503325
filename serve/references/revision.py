"""The Git revision of a file's repository, read from its files: no process is started, and nothing of it is run."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import NamedTuple

_REVISION = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_CHAIN = 5  # links from one reference to the next that are followed
_SMALL = 4_096  # bytes of a file that names one thing
_PACKED = 64 << 20  # bytes of packed references that are looked through


class Repository(NamedTuple):
    """own: the folder of this working tree's HEAD. common: of what all working trees of the repository share."""

    own: Path
    common: Path


Stamp = tuple[tuple[int, int, int] | None, ...]


class Revisions:
    """Remembers the revision of each repository until a file that says it changes. Callable from many threads at once."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[Path, ...], Stamp, str]] = {}
        self._lock = threading.Lock()

    def of(self, file: str) -> str:
        """The revision that is checked out where a file lies, "" where there is none or it cannot be read."""
        repository = find(Path(file).parent)
        if repository is None:
            return ""
        with self._lock:
            known = self._known.get(repository.own)
            if known is not None and known[1] == _stamp(known[0]):
                return known[2]
        looked_at: list[Path] = []
        # Stats first: what changes while it is read is read again next time.
        before: dict[Path, tuple[int, int, int] | None] = {}
        revision = _resolve(repository, looked_at, before)
        with self._lock:
            self._known[repository.own] = (tuple(looked_at), tuple(before[path] for path in looked_at), revision)
        return revision


def find(folder: Path) -> Repository | None:
    """The repository whose working tree a folder lies in."""
    for place in (folder, *folder.parents):
        entry = place / ".git"
        try:
            if entry.is_dir():
                if (entry / "HEAD").is_file():
                    return Repository(entry, _common(entry))
            elif entry.is_file():
                return _pointed_to(entry)
        except OSError:
            return None
    return None


def _pointed_to(entry: Path) -> Repository | None:
    """The repository that a `.git` file names: that of a working tree beside the first, or of a submodule."""
    text = _line(entry)
    if not text.startswith("gitdir:"):
        return None
    own = entry.parent / text.removeprefix("gitdir:").strip()
    return Repository(own, _common(own)) if (own / "HEAD").is_file() else None


def _common(own: Path) -> Path:
    text = _line(own / "commondir")
    return own / text if text else own


def _resolve(repository: Repository, looked_at: list[Path], before: dict[Path, tuple[int, int, int] | None]) -> str:
    """The revision that HEAD stands for; all files that were asked are put into `looked_at`, with their stats."""

    def line(path: Path) -> str:
        looked_at.append(path)
        before[path] = _stat(path)
        return _line(path)

    text = line(repository.own / "HEAD")
    for _step in range(_CHAIN):
        if not text.startswith("ref:"):
            return text if _REVISION.fullmatch(text) else ""
        name = text.removeprefix("ref:").strip()
        if not name.startswith("refs/") or ".." in name.split("/"):
            return ""
        text = line(repository.own / name) or line(repository.common / name)
        if not text:
            packed = repository.common / "packed-refs"
            looked_at.append(packed)
            before[packed] = _stat(packed)
            return _packed(packed, name)
    return ""


def _packed(path: Path, name: str) -> str:
    """The revision of a packed reference."""
    try:
        with path.open("rb") as file:
            data = file.read(_PACKED)
    except OSError:
        return ""
    wanted = b" " + os.fsencode(name)
    for line in data.splitlines():
        if line.endswith(wanted):
            revision = line[: -len(wanted)].decode("ascii", "replace")
            if _REVISION.fullmatch(revision):
                return revision
    return ""


def _line(path: Path) -> str:
    """The content of a small file, "" when there is none or it cannot be read."""
    try:
        with path.open("rb") as file:
            return os.fsdecode(file.read(_SMALL)).strip()
    except OSError:
        return ""


def _stamp(paths: tuple[Path, ...]) -> Stamp:
    return tuple(_stat(path) for path in paths)


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
