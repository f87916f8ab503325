"""Tidy the catalog: cards of sources that are gone, and pages that no build made, leave it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.engine import files, outputs
from pipeline.tasks import card, hub

if TYPE_CHECKING:
    from pipeline.engine.build import Build


def settings(build: Build) -> list[str]:
    """The names of the sources: the cards of one that is gone have to go."""
    return [source.name for source in build.sources]


def intact(build: Build) -> bool:
    """Whether no folder of the catalog has gained or lost a file since the last time."""
    try:
        folders = _folders_path(build).read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return folders == _folders(build)


def run(build: Build) -> None:
    """Remove what no source and no step owns."""
    root = build.paths.catalog
    names = {source.name for source in build.sources}
    with build.report.timing("tidy") as count:
        for path in sorted((build.paths.build / "card").glob("*.jsonl")):
            if path.name.removesuffix(".jsonl") not in names:
                count.removed += len(outputs.drop(root, path))
        for stranger in strangers(build):
            (root / stranger).unlink()
            count.removed += 1
        files.write(_folders_path(build), _folders(build).encode())


def strangers(build: Build) -> list[str]:
    """Pages in the catalog that no build made."""
    ledgers = [hub.ledger(build), *(card.ledger(build, source.name) for source in build.sources)]
    return outputs.strangers(build.paths.catalog, ledgers)


def _folders_path(build: Build) -> Path:
    return build.paths.build / "tidy.folders"


def _folders(build: Build) -> str:
    """A digest over the catalog's folders and when each last gained or lost an entry."""
    parts = []
    stack = [build.paths.catalog]
    while stack:
        folder = stack.pop()
        parts.append(f"{folder} {folder.stat().st_mtime_ns}" if folder.is_dir() else f"{folder} gone")
        if folder.is_dir():
            children = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
            stack.extend(Path(entry.path) for entry in children if not entry.name.startswith("."))
    return files.key(*sorted(parts))
