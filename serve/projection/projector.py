"""Puts the package of a chosen skill into the lane of one harness, or finds that it lies there already.

The copy is made outside the lane and put there by one rename, under the lane's lock. Whoever reads the lane meets the old copy
or the new one, whole.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import NamedTuple

from serve.contract import Record
from serve.harnesses import harness as harness_named
from serve.projection import damaged, locks, origin, own
from serve.projection.errors import ProjectionError, refused
from serve.projection.layout import Layout, copy_print
from serve.projection.manifest import Manifest, Row
from serve.projection.names import Place, choose, key
from serve.projection.package import Package, look
from serve.projection.putting import put_in_place
from serve.projection.recovery import open_manifest, owned, row_of
from serve.projection.staging import Staged, stage_package
from serve.settings import Bounds


class Projected(NamedTuple):
    """Where a skill's package lies for the harness.

    path: its folder, absolute. name: under which the harness lists it. files, bytes: of the copy without its marker. skipped:
    what was left out or changed, each with its reason. state: "copied" (new), "refreshed" (put anew in place of an older
    copy), "current" (was there already) or "installed" (the harness has the skill itself, nothing was copied).
    """

    path: Path
    name: str
    files: int
    bytes: int
    skipped: tuple[str, ...]
    state: str


class Projector:
    """Projects into the lane of `harness` below `data_dir`. Callable from many threads and processes at once."""

    def __init__(self, data_dir: Path, harness: str, bounds: Bounds) -> None:
        self.layout = Layout(data_dir)
        self.harness = harness
        self.bounds = bounds
        self.limit = harness_named(harness).name_limit
        self.lane = self.layout.lane(harness)

    def project(self, record: Record) -> Projected:
        """Have the skill's package in the lane. Raises ProjectionError, the lane being as it was before."""
        try:
            return self._project(record)
        except sqlite3.Error as error:
            raise ProjectionError(
                f"the list of projections cannot be used: {error}",
                where=str(self.layout.manifest),
                next_step="run `retrieval projected repair`",
            ) from error
        except OSError as error:
            raise refused(error, self.lane) from error

    def _project(self, record: Record) -> Projected:
        if is_installed(record, self.harness):
            return Projected(Path(record.path).parent, record.name, record.files + 1, record.bytes, (), "installed")
        origin.check(record)
        package = look(record.path, self.bounds.project_files, time.time_ns())
        names = own.names(self.harness, self.lane)
        with open_manifest(self.layout) as manifest:
            row = manifest.of_id(self.harness, record.id)
            if row is not None and self._is_current(row, package, names):
                locks.sweep(self.layout.staging)
                return self._projected(row, "current")
            with locks.stage(self.layout.staging) as folder:
                staged = stage_package(package, record, folder / "new", self.bounds.project_bytes)
                self.lane.mkdir(parents=True, exist_ok=True)
                with locks.locked(self.layout.lock(self.harness)):
                    return self._settle(record, staged, names, manifest)

    def _is_current(self, row: Row, package: Package, names: own.Names) -> bool:
        """Whether nothing has to be done: neither original nor copy has changed, and no new skill has the copy's names."""
        return (
            row.seen == package.fingerprint != ""
            and row.original == package.root
            and row.copied == copy_print(self.lane / row.folder, row.paths) != ""
            and not own.clash((row.name, row.folder), names)
            and names.exact.isdisjoint(own.loose_names(row.paths, self.harness))
        )

    def _settle(self, record: Record, staged: Staged, names: own.Names, manifest: Manifest) -> Projected:
        """Give a staged package its name and put it into the lane. Under the lane's lock."""
        row = self._held(record, staged, manifest)
        place = self._place(record, staged, names, manifest, row)
        self._leave_out_loose(record, staged, names, manifest)
        state = "copied" if row is None else "refreshed"
        if row is not None and self._is_same(row, staged, place):
            row = row._replace(seen=staged.package.fingerprint, original=staged.package.root)
            state = "current"
        else:
            marker = staged.finish(record, self.harness, place, time.time())
            put_in_place(self.layout, self.harness, staged.folder, place.folder, row)
            row = row_of(marker, place.folder, self.lane / place.folder, staged.package.fingerprint)
        manifest.put(row, own.loose_names(row.paths, self.harness))
        return self._projected(row, state)

    def _held(self, record: Record, staged: Staged, manifest: Manifest) -> Row | None:
        """The copy of the skill that lies in the lane now: also one that only its marker tells of, or only its files."""
        row = manifest.of_id(self.harness, record.id)
        if row is not None:
            marker = owned(self.lane / row.folder, self.harness)
            if (marker is not None and marker.id == record.id) or damaged.is_listed(row, self.lane / row.folder):
                return row
            manifest.remove(self.harness, row.folder)
        unlisted = self._unlisted(manifest)
        for name in unlisted:
            marker = owned(self.lane / name, self.harness)
            if marker is not None and marker.id == record.id:
                return row_of(marker, name, self.lane / name, "")
        found = (damaged.recognised(staged, record, self.harness, self.lane / name) for name in unlisted)
        return next((row for row in found if row is not None), None)

    def _place(self, record: Record, staged: Staged, names: own.Names, manifest: Manifest, row: Row | None) -> Place:
        """The name and folder for the copy: its own where they are free."""
        held = None if row is None else Place(row.name, row.folder)
        stems = own.loose_names(staged.paths(), self.harness)
        others = [str(self.lane / name) for name in self._unlisted(manifest) if held is None or name != held.folder]
        foreign = {key(name) for folder in others for name in own.names_of(folder)}

        def free(place: Place) -> bool:
            wanted = set(place)
            return not (
                own.clash(wanted, names)
                or wanted & stems
                or any(key(name) in foreign for name in wanted)
                or any(manifest.taken(self.harness, name, record.id) for name in wanted)
                or any(manifest.loose(self.harness, name, record.id) for name in wanted)
            )

        return choose(record.name, record.id, self.limit, free, held)

    def _leave_out_loose(self, record: Record, staged: Staged, names: own.Names, manifest: Manifest) -> None:
        """Take out Markdown files by whose names Hermes would no longer find another skill."""
        stems = own.loose_names(staged.paths(), self.harness)
        clashing = (stems & names.exact) | (stems & manifest.named(self.harness, stems, record.id)) if stems else set()
        for path in staged.paths():
            if own.loose_names([path], self.harness) & clashing:
                staged.leave_out({path}, "Hermes would confuse it with the skill of that name")

    def _is_same(self, row: Row, staged: Staged, place: Place) -> bool:
        """Whether the copy in the lane is sound and holds what was staged."""
        sound = row.copied == copy_print(self.lane / row.folder, row.paths) != ""
        return sound and row.package == staged.digest and (row.name, row.folder) == place

    def _unlisted(self, manifest: Manifest) -> list[str]:
        return sorted(set(os.listdir(self.lane)) - manifest.folders(self.harness))

    def _projected(self, row: Row, state: str) -> Projected:
        return Projected(self.lane / row.folder, row.name, len(row.paths), row.bytes, row.skipped, state)


def is_installed(record: Record, harness: str) -> bool:
    """Whether the harness has the skill itself, shown or hidden. What lies in its archive it does not have."""
    return harness in (*record.hidden_in, *record.native_in) or (
        record.harness == harness and record.state in {"hidden", "native"}
    )
