"""The catalog's hub pages: index, sources, categories, and the configuration that makes it an IWE library."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.engine import files, manifest, outputs
from pipeline.model import Link
from pipeline.tasks import select as select_task
from pipeline.tasks import texts

if TYPE_CHECKING:
    from pipeline.engine.build import Build


def settings(build: Build) -> list[str]:
    """Digests of the step's code and of the category labels."""
    return [texts.code_digest("hub"), build.vocabulary.taxonomy]


def ledger(build: Build) -> Path:
    """Which of these pages are on disk and what they were made from."""
    return build.paths.build / "hub.jsonl"


def intact(build: Build) -> bool:
    """Whether the pages are as they were written."""
    return outputs.intact(build.paths.catalog, ledger(build))


def run(build: Build) -> None:
    """Write the pages that link the cards."""
    pages = {
        path: outputs.Wanted(files.digest(text.encode()), partial(str, text)) for path, text in wanted(build).items()
    }
    with build.report.timing("hub") as count:
        if build.dry:
            outputs.foresee(build.paths.catalog, ledger(build), pages, count)
        else:
            outputs.bring(build.paths.catalog, ledger(build), pages, count)


def wanted(build: Build) -> dict[str, str]:
    """These pages by relative path."""
    from pipeline.steps import hubs

    links = manifest.load(select_task.links_path(build), Link)
    return {**hubs.hubs(links, build.taxonomy.labels), **hubs.library()}
