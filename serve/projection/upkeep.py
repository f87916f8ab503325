"""Looking after the lanes: what lies there, taking copies away, and putting manifest and markers in order again."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from serve.errors import ExitCode
from serve.projection import locks
from serve.projection.errors import ProjectionError, told
from serve.projection.layout import Layout, copy_print
from serve.projection.manifest import Manifest, Row
from serve.projection.package import shown
from serve.projection.putting import keep, was_changed
from serve.projection.recovery import adopt, compare, manifest_to_read, open_manifest


class Listed(NamedTuple):
    """A projection as it is listed. state: "ok", "changed" (not as it was written), or "missing"."""

    row: Row
    path: Path
    state: str

    def as_dict(self) -> dict[str, Any]:
        """The projection as JSON shows it."""
        row = self.row
        return {
            "id": row.id,
            "name": row.name,
            "harness": row.harness,
            "path": str(self.path),
            "original": row.original,
            "files": len(row.paths),
            "bytes": row.bytes,
            "state": self.state,
            "skipped": list(row.skipped),
            "projected_at": row.projected_at,
        }


class Untouched(NamedTuple):
    """Something in a lane, or wished to be removed, that was left alone. what: a path or an ID."""

    what: str
    reason: str


class Cleared(NamedTuple):
    """What was removed, or would be. kept: copies that somebody had changed, and where they are now. untouched: the rest."""

    removed: list[Listed]
    kept: list[Untouched]
    untouched: list[Untouched]


class Repaired(NamedTuple):
    """What was put in order. adopted: listed again. forgotten: rows whose folder is gone. swept: staging folders removed.

    foreign: what else lies in the lanes, left alone.
    """

    adopted: list[Row]
    forgotten: list[Row]
    swept: list[Path]
    foreign: list[Untouched]


def listing(layout: Layout, harness: str = "") -> tuple[list[Listed], list[Untouched]]:
    """All projections, of one harness or of all, and what else lies in their lanes. Nothing need be writable for that.

    Raises ProjectionError.
    """
    found: list[Listed] = []
    rest: list[Untouched] = []
    if not layout.root.is_dir():
        return found, rest
    with told(layout.manifest, reading=True), manifest_to_read(layout) as manifest:
        for name in _lanes(layout, harness):
            lane = compare(layout, manifest, name)
            missing = {row.folder for row in lane.missing}
            found += [_listed(layout, row, missing) for row in manifest.rows(name)]
            rest += _rest(layout, name, lane.foreign, list(lane.unlisted))
    return found, rest


def clear(layout: Layout, harness: str, ids: Collection[str] | None, *, dry_run: bool) -> Cleared:
    """Remove the copies of the skills with these IDs, or all for None, from one lane or from all.

    A copy needs a row in the manifest and a marker that says the same; whatever else lies in a lane stays. Raises
    ProjectionError for an ID of which there is no copy, and for a list that cannot be written: then nothing was removed.
    """
    result = Cleared([], [], [])
    if not layout.root.is_dir():
        _check_known(ids, [])
        return result
    with (
        told(layout.manifest, reading=dry_run),
        manifest_to_read(layout) if dry_run else open_manifest(layout) as manifest,
    ):
        lanes = _lanes(layout, harness)
        _check_known(ids, [row for name in lanes for row in manifest.rows(name)])
        if not dry_run:
            manifest.check_writable()
        for name in lanes:
            with nullcontext() if dry_run else locks.locked(layout.lock(name)):
                _clear_lane(layout, manifest, name, ids, result, dry_run=dry_run)
    return result


def _check_known(ids: Collection[str] | None, rows: Collection[Row]) -> None:
    unknown = sorted(set(ids or ()) - {row.id for row in rows})
    if unknown:
        raise ProjectionError(
            f"there is no projected copy of {shown(unknown[0])}",
            next_step="run `retrieval projected list` and use exact IDs",
            code=ExitCode.USAGE,
        )


def repair(layout: Layout) -> Repaired:
    """List what only its marker tells of, forget what is gone, and remove what killed processes left behind.

    Raises ProjectionError, for a list that cannot be written before anything was done.
    """
    result = Repaired([], [], [], [])
    if not layout.root.is_dir():
        return result
    with told(layout.manifest), open_manifest(layout) as manifest:
        manifest.check_writable()
        result.swept.extend(locks.sweep(layout.staging))
        for name in _lanes(layout, ""):
            with locks.locked(layout.lock(name)):
                for row in compare(layout, manifest, name).missing:
                    manifest.remove(name, row.folder)
                    result.forgotten.append(row)
                result.adopted.extend(adopt(layout, manifest, name))
            lane = compare(layout, manifest, name)
            result.foreign.extend(_rest(layout, name, lane.foreign, list(lane.unlisted)))
    return result


def stale_stages(layout: Layout) -> list[Path]:
    """Staging folders that no living process uses."""
    return locks.stale(layout.staging)


def orphans(layout: Layout, known: Collection[str]) -> list[Listed]:
    """The copies of skills that are not among the IDs `known`: their originals are in no source any more."""
    return [item for item in listing(layout)[0] if item.row.id not in known]


def _clear_lane(
    layout: Layout, manifest: Manifest, harness: str, ids: Collection[str] | None, result: Cleared, *, dry_run: bool
) -> None:
    lane = compare(layout, manifest, harness)
    missing = {row.folder for row in lane.missing}
    for row in manifest.rows(harness):
        if ids is not None and row.id not in ids:
            continue
        listed = _listed(layout, row, missing)
        if listed.state == "missing":
            if os.path.lexists(listed.path):
                reason = "its marker does not say that it is this skill's copy"
                result.untouched.append(Untouched(str(listed.path), reason))
                continue
            if not dry_run:
                manifest.remove(harness, row.folder)
        elif not dry_run:
            _take_away(layout, manifest, row, listed.path, result)
        result.removed.append(listed)
    if ids is None:
        result.untouched.extend(_rest(layout, harness, lane.foreign, list(lane.unlisted)))


def _take_away(layout: Layout, manifest: Manifest, row: Row, path: Path, result: Cleared) -> None:
    """Take one copy out of the lane in one step, then remove it, or keep it when somebody has changed it."""
    with locks.stage(layout.staging) as stage:
        aside = stage / "old"
        os.rename(path, aside)
        manifest.remove(row.harness, row.folder)
        if was_changed(aside, row):
            kept = keep(layout, row.harness, aside, row.folder)
            result.kept.append(Untouched(str(kept), f"the copy of {row.id} had been changed"))


def _listed(layout: Layout, row: Row, missing: Collection[str]) -> Listed:
    path = layout.lane(row.harness) / row.folder
    if row.folder in missing:
        return Listed(row, path, "missing")
    sound = row.copied == copy_print(path, row.paths) != ""
    return Listed(row, path, "ok" if sound else "changed")


def _lanes(layout: Layout, harness: str) -> list[str]:
    return [name for name in layout.harnesses() if harness in {"", name}]


def _rest(layout: Layout, harness: str, foreign: list[str], unlisted: list[str]) -> list[Untouched]:
    lane = layout.lane(harness)
    listed = [
        Untouched(str(lane / name), "it has a marker but is not listed; `projected repair` lists it")
        for name in unlisted
    ]
    return [*listed, *(Untouched(str(lane / name), "it is no projection of Retrieval's") for name in foreign)]
