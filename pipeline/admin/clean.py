"""Removing what builds have made."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.engine.build import Build


def clean(build: Build, *, memo: bool, dry_run: bool) -> list[Path]:
    """Remove manifests, catalog, snapshots and the embedded store; with `memo` the memoised results too.

    Only what is known by name is removed, never the data directory as a whole. A collection on a server stays: it may be
    in use from elsewhere. Returns the paths removed, or that would be.
    """
    paths = build.paths
    doomed = [paths.build, paths.catalog, paths.snapshots, paths.lineage, paths.last_run]
    doomed += [paths.lineage.with_name(paths.lineage.name + end) for end in ("-wal", "-shm")]
    if build.settings.chroma.mode == "embedded":
        doomed.append(paths.store)
    if memo:
        doomed += [paths.memo, *(paths.memo.with_name(paths.memo.name + end) for end in ("-wal", "-shm"))]
    present = [path for path in doomed if path.exists()]
    if dry_run:
        return present
    build.writer()
    for path in present:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return present
