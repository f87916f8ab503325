"""What the markers say: rows of a manifest that was lost, and folders in a lane that no manifest lists."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from serve.projection import locks
from serve.projection.copying import holds
from serve.projection.errors import is_unwritable
from serve.projection.layout import Layout, Marker, copy_print, read_marker
from serve.projection.manifest import Manifest, Row, discard, is_damaged
from serve.projection.own import loose_names


class Lane(NamedTuple):
    """A lane compared with the manifest.

    unlisted: folders whose marker says that they are projections of this lane. missing: listed ones that are not there, or
    are no longer the projection that is listed. foreign: whatever else lies there.
    """

    unlisted: dict[str, Marker]
    missing: list[Row]
    foreign: list[str]


def open_manifest(layout: Layout) -> Manifest:
    """The manifest; one that is damaged or gone is made anew from the markers. Raises sqlite3.Error, OSError."""
    if not layout.manifest.exists() and layout.harnesses():
        return rebuilt(layout)
    try:
        return Manifest(layout.manifest)
    except sqlite3.DatabaseError as error:
        if not is_damaged(error):
            raise
    return rebuilt(layout, damaged=True)


@contextmanager
def manifest_to_read(layout: Layout) -> Iterator[Manifest]:
    """The manifest for a block that only reads, also where nothing can be written: then a copy of it, made elsewhere.

    Raises sqlite3.Error, OSError.
    """
    try:
        manifest = open_manifest(layout)
    except (OSError, sqlite3.Error) as error:
        if not is_unwritable(error):
            raise
    else:
        with manifest:
            yield manifest
        return
    with (
        tempfile.TemporaryDirectory(prefix="retrieval-") as place,
        _copied(layout, Path(place) / layout.manifest.name) as manifest,
    ):
        yield manifest


def _copied(layout: Layout, place: Path) -> Manifest:
    """A copy of the manifest, completed from the markers where it is damaged or gone."""
    for ending in ("", "-wal"):
        source = layout.manifest.with_name(layout.manifest.name + ending)
        if source.exists():
            shutil.copyfile(source, place.with_name(place.name + ending))
    known = place.exists()
    try:
        manifest = Manifest(place)
    except sqlite3.DatabaseError as error:
        if not is_damaged(error):
            raise
        discard(place)
        manifest, known = Manifest(place), False
    for harness in [] if known else layout.harnesses():
        adopt(layout, manifest, harness)
    return manifest


def rebuilt(layout: Layout, *, damaged: bool = False) -> Manifest:
    """A manifest with a row for each folder that has a marker. damaged: whether there is one that has to go first."""
    with locks.locked(layout.root / ".rebuild.lock"):
        if damaged:
            try:
                return Manifest(layout.manifest)  # mended by another process meanwhile
            except sqlite3.DatabaseError as error:
                if not is_damaged(error):
                    raise
                discard(layout.manifest)
        manifest = Manifest(layout.manifest)
        for harness in layout.harnesses():
            adopt(layout, manifest, harness)
    return manifest


def adopt(layout: Layout, manifest: Manifest, harness: str) -> list[Row]:
    """List the folders of a lane that have a marker and are not listed; of two copies of a skill the newer one."""
    lane = layout.lane(harness)
    adopted = []
    found = compare(layout, manifest, harness).unlisted
    for folder, marker in sorted(found.items(), key=lambda item: -item[1].projected_at):
        if manifest.of_id(harness, marker.id) is None:
            row = row_of(marker, folder, lane / folder, "")
            manifest.put(row, loose_names(row.paths, harness))
            adopted.append(row)
    return sorted(adopted)


def compare(layout: Layout, manifest: Manifest, harness: str) -> Lane:
    """What lies in a lane and what the manifest says of it."""
    lane = layout.lane(harness)
    rows = {row.folder: row for row in manifest.rows(harness)}
    try:
        present = sorted(os.listdir(lane))
    except FileNotFoundError:
        present = []
    unlisted: dict[str, Marker] = {}
    foreign, sound = [], set()
    for name in present:
        marker = owned(lane / name, harness)
        row = rows.get(name)
        if marker is not None and row is not None and marker.id == row.id:
            sound.add(name)
        elif marker is not None and row is None:
            unlisted[name] = marker
        else:
            foreign.append(name)
    return Lane(unlisted, [row for name, row in sorted(rows.items()) if name not in sound], foreign)


def owned(folder: Path, harness: str) -> Marker | None:
    """The marker of a folder that is a projection in the lane of `harness`; a link to one is none."""
    if folder.is_symlink():
        return None
    marker = read_marker(folder)
    return marker if marker is not None and marker.harness == harness else None


def row_of(marker: Marker, folder: str, path: Path, seen: str) -> Row:
    """The manifest's row of a folder that is marked so. seen: the original's fingerprint, "" for unknown."""
    paths = tuple(file.path for file in marker.files)
    # The print is taken first: what is written between the two is then noticed the next time.
    copied = copy_print(path, paths)
    return Row(
        harness=marker.harness,
        folder=folder,
        id=marker.id,
        name=marker.name,
        original=marker.original,
        package=marker.package,
        seen=seen,
        copied=copied if holds(path, marker.files) and read_marker(path) == marker else "",
        bytes=sum(file.size for file in marker.files),
        projected_at=marker.projected_at,
        paths=paths,
        skipped=marker.skipped,
    )
