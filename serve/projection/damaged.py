"""Copies whose marker is damaged or gone: which folder of a lane is still known to be one of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from blake3 import blake3

from serve.contract import Record
from serve.projection.copying import holds
from serve.projection.layout import MARKER, SKILL_FILE, CopiedFile, files_print, read_marker, same_files
from serve.projection.manifest import Row
from serve.projection.names import Place
from serve.projection.own import names_of
from serve.projection.staging import Staged, fitted


def is_listed(row: Row, folder: Path) -> bool:
    """Whether a folder is the copy that a row lists, going by its files alone: nothing was written to any of them since."""
    return same_files(row.copied, folder, row.paths)


def recognised(staged: Staged, record: Record, harness: str, folder: Path) -> Row | None:
    """The row of a folder that no row lists: one that has a file for a marker, but not a marker any more, and beside it
    nothing but what would be written there now, byte for byte. None for any other folder.
    """
    if not _has_damaged_marker(folder):
        return None
    paths = tuple(staged.paths())
    if not _holds_only(folder, {*paths, MARKER}):
        return None
    name = names_of(str(folder))[-1]
    known = files_print(folder, paths)
    try:
        data, _notes = fitted((staged.folder / SKILL_FILE).read_bytes(), record, harness, Place(name, folder.name))
    except OSError:
        return None
    skill = CopiedFile(SKILL_FILE, len(data), 0, blake3(data).hexdigest(length=16))
    if not holds(folder, [skill, *staged.files[1:]]):
        return None
    return Row(
        harness=harness,
        folder=folder.name,
        id=record.id,
        name=name,
        original=staged.package.root,
        package=staged.digest,
        seen="",
        copied=known,  # of the files alone: nothing was written by others, and yet the copy is not sound
        bytes=sum(file.size for file in staged.files),
        projected_at=time.time(),
        paths=paths,
        skipped=(),
    )


def _has_damaged_marker(folder: Path) -> bool:
    return files_print(folder, [MARKER]) != "" and read_marker(folder) is None


def _holds_only(folder: Path, expected: set[str]) -> bool:
    for parent, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in (*files, *links):
            if os.path.relpath(os.path.join(parent, name), folder).replace(os.sep, "/") not in expected:
                return False
    return True
