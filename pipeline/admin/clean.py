"""Removing what builds have made."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from serve import contract

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.engine.build import Build


class Cleaned(NamedTuple):
    """What was removed, or would be, and what stays although a build made it (path or place, and why)."""

    removed: list[Path]
    kept: list[tuple[str, str]]


def clean(build: Build, *, memo: bool, dry_run: bool) -> Cleaned:
    """Remove manifests, catalog, snapshots and the embedded store; with `memo` the memoised results too.

    Only what is known by name is removed, never a folder that something else may lie in. Takes the writer lock.
    """
    paths = build.paths
    doomed = [paths.build, paths.catalog, paths.snapshots, *_database(paths.lineage), paths.last_run]
    kept = []
    store = build.settings.chroma
    if store.mode != "embedded":
        kept.append((store.host or store.mode, "a server's collections may be in use from elsewhere"))
    elif store.path == paths.store:
        doomed.append(paths.store)
    elif store.path.exists():
        kept.append((str(store.path), "the store's folder is your own choice, and may hold other things"))
    if memo:
        doomed += [*_database(paths.memo), paths.data / "models"]
    elif paths.memo.exists():
        kept.append((str(paths.memo), "results are remembered, so that the next build is quick; --memo forgets them"))
    present = [path for path in doomed if os.path.lexists(path)]
    if present and not dry_run:
        build.writer()
        # Readers lose the index in one step, before its parts go.
        with suppress(NotADirectoryError):
            (paths.snapshots / contract.POINTER).unlink(missing_ok=True)
        for path in present:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    return Cleaned(present, kept)


def _database(path: Path) -> list[Path]:
    return [path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))]
