"""The indexed skills with all that earlier steps made of them: what the store and the snapshot are written from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pipeline.engine import files, manifest
from pipeline.model import Keyed, Selected

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from serve.contract import Record


class Entry(NamedTuple):
    """One indexed skill with the rows that name its descriptor and its vector."""

    source: str
    selected: Selected
    descriptor: Keyed
    embed: Keyed

    @property
    def id(self) -> str:
        """The skill's ID."""
        return self.selected.id


def gather(build: Build) -> list[Entry]:
    """All indexed skills in ascending order of their IDs' UTF-8 bytes."""
    entries = []
    for source in build.sources:
        keyed = [{row.id: row for row in build.rows(step, source.name, Keyed)} for step in ("descriptor", "embed")]
        entries += [
            Entry(source.name, row, *(rows[row.id] for rows in keyed))
            for row in build.rows("select", source.name, Selected)
            if row.record is not None
        ]
    return sorted(entries, key=lambda entry: entry.id.encode("utf-8", "surrogatepass"))


def selected(entries: Sequence[Entry]) -> dict[str, Selected]:
    """The select rows by ID."""
    return {entry.id: entry.selected for entry in entries}


def mark(record: Record) -> str:
    """A digest of a record without the digests of its files: what a card shows of it."""
    shown = msgspec.structs.replace(record, digest="", package_digest="", files=0, bytes=0)
    return files.digest(manifest.encode(shown))


def whole_mark(entry: Entry) -> str:
    """A digest of all of an entry's record."""
    record = entry.selected.record
    if record is None:
        return files.digest(b"")
    return files.digest(
        f"{entry.selected.mark} {record.digest} {record.package_digest} {record.files} {record.bytes}".encode()
    )
