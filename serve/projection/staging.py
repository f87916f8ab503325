"""A package in a staging folder: copied, verified, on disk, and then finished for its place in a lane."""

from __future__ import annotations

import os
from pathlib import Path

from blake3 import blake3

from serve.contract import Record
from serve.projection import frontmatter
from serve.projection.copying import Copier, sync, verify
from serve.projection.layout import MARKER, MARKER_VERSION, SKILL_FILE, CopiedFile, Marker, marker_bytes, package_digest
from serve.projection.names import Place
from serve.projection.package import Package, named, shown

# Hermes lists a skill without a description by its first line; the others do not list it.
_UNDESCRIBED = frozenset({"hermes"})
_DESCRIPTION = 1_000


class Staged:
    """A package's copy in the folder `folder`, not yet in any lane."""

    def __init__(self, package: Package, folder: Path, files: list[CopiedFile], skipped: list[str]) -> None:
        self.package = package
        self.folder = folder
        self.files = files
        self.skipped = skipped

    @property
    def digest(self) -> str:
        """Over what was copied, as it is in the original."""
        return package_digest(self.files)

    def paths(self) -> list[str]:
        """The copied files."""
        return [file.path for file in self.files]

    def leave_out(self, paths: set[str], reason: str) -> None:
        """Take files out of the copy again."""
        for path in paths:
            (self.folder / path).unlink()
            self.skipped.append(f"{shown(path)}: {reason}")
        self.files = [file for file in self.files if file.path not in paths]

    def finish(self, record: Record, harness: str, place: Place, when: float) -> Marker:
        """Have SKILL.md bear the place's name, write the marker, put both on disk. Returns the marker."""
        package = self.digest
        self._name(record, harness, place)
        marker = Marker(
            version=MARKER_VERSION,
            id=record.id,
            harness=harness,
            name=place.name,
            original=self.package.root,
            package=package,
            indexed=record.package_digest,
            files=tuple(self.files),
            skipped=named(self.skipped),
            projected_at=when,
        )
        (self.folder / MARKER).write_bytes(marker_bytes(marker))
        sync(self.folder, [SKILL_FILE, MARKER])
        return marker

    def _name(self, record: Record, harness: str, place: Place) -> None:
        """Write the name, and a description where the harness needs one, into SKILL.md. Most need no change at all."""
        path = self.folder / SKILL_FILE
        data, notes = fitted(path.read_bytes(), record, harness, place)
        if not notes:
            return
        _overwrite(path, data)
        file = CopiedFile(SKILL_FILE, len(data), self.files[0].mode, blake3(data).hexdigest(length=16))
        self.files = [file, *self.files[1:]]
        verify(self.folder, self.files[:1])
        self.skipped.insert(0, f"SKILL.md: {'; '.join(notes)}")


def fitted(data: bytes, record: Record, harness: str, place: Place) -> tuple[bytes, list[str]]:
    """A SKILL.md as it has to be at a place in the lane of a harness, and what that changes, nothing for most."""
    text, notes = _decoded(data)
    head = frontmatter.read(text)
    reads = place.folder if head.name is None else head.name
    described = head.described or harness in _UNDESCRIBED
    if reads != place.name:
        notes.append(_renaming(head.name, place.name, record.name))
    if not described:
        notes.append("a description was added")
    if head.odd_end is not None:
        notes.append("the line that closes its head was written so that every harness knows it")
    if reads != place.name or not described or head.odd_end is not None:
        description = "" if described else record.description[:_DESCRIPTION] or record.name
        text = frontmatter.renamed(text, None if reads == place.name else place.name, description)
    return text.encode("utf-8") if notes else data, notes


def _renaming(read: str | None, name: str, original: str) -> str:
    """What is said of a name that is not what a harness reads in the original. read: as in `Head`."""
    if name != original or read:
        return f"the name is {name}, in the original {shown(read or original)}"
    if read is None:
        return f"the name {name} was added"
    return f"the name {name} was written so that every harness reads it"


def stage_package(package: Package, record: Record, target: Path, limit: int) -> Staged:
    """Copy a package into the folder `target`, which is made. Raises ProjectionError, OSError on writing."""
    target.mkdir()
    copier = Copier(package, record, target, limit)
    copier.run()
    verify(target, copier.files)
    sync(target, [file.path for file in copier.files])
    return Staged(package, target, copier.files, copier.skipped)


def _overwrite(path: Path, data: bytes) -> None:
    mode = os.stat(path).st_mode
    path.unlink()
    path.write_bytes(data)
    os.chmod(path, mode & 0o7777)


def _decoded(data: bytes) -> tuple[str, list[str]]:
    """The text, and what had to be done so that every harness can read it."""
    for mark in (b"\xff\xfe", b"\xfe\xff"):
        if data.startswith(mark):
            return data.decode("utf-16", "replace"), ["written anew as UTF-8, it is UTF-16"]
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), ["written anew as UTF-8, it has bytes that are not"]
