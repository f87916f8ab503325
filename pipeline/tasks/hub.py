"""The catalog's other pages: index, sources, categories, and the configuration that makes it an IWE library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.engine import files, manifest, outputs
from pipeline.tasks import card as card_task
from pipeline.tasks import select as select_task
from pipeline.tasks import texts
from serve.contract import Record

if TYPE_CHECKING:
    from pipeline.engine.build import Build


def settings(build: Build) -> list[str]:
    """Digests of the step's code and of the category labels."""
    return [texts.code_digest("hub"), build.vocabulary.taxonomy]


def ledger(build: Build) -> Path:
    """Which of these pages are on disk and what they were made from."""
    return build.paths.build / "hub.jsonl"


def intact(build: Build) -> bool:
    """Whether the pages are as they were written and no folder of the catalog has gained or lost a file since."""
    try:
        folders = _folders_path(build).read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return folders == _folders(build) and outputs.intact(build.paths.catalog, ledger(build))


def run(build: Build) -> None:
    """Write the pages that link the cards, remove cards of sources that are gone and pages nobody owns."""
    root = build.paths.catalog
    pages = {
        path: outputs.Wanted(files.digest(text.encode()), lambda text=text: text) for path, text in wanted(build).items()
    }
    names = [source.name for source in build.sources]
    with build.report.timing("hub") as count:
        if build.dry:
            outputs.foresee(root, ledger(build), pages, count)
            return
        for path in sorted((build.paths.build / "card").glob("*.jsonl")):
            if path.stem not in names:
                count.removed += len(outputs.drop(root, path))
        outputs.bring(root, ledger(build), pages, count)
        for path in strangers(build):
            (root / path).unlink()
            count.removed += 1
        files.write(_folders_path(build), _folders(build).encode())


def wanted(build: Build) -> dict[str, str]:
    """These pages by relative path."""
    from pipeline.steps import hubs

    records = manifest.load(select_task.links_path(build), Record)
    return {**hubs.hubs(records, build.taxonomy.labels), **hubs.library()}


def strangers(build: Build) -> list[str]:
    """Pages in the catalog that no build made."""
    ledgers = [ledger(build), *(card_task.ledger(build, source.name) for source in build.sources)]
    return outputs.strangers(build.paths.catalog, ledgers)


def _folders_path(build: Build) -> Path:
    return build.paths.build / "hub.folders"


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
