"""Cards of a source in the IWE catalog: one Markdown page per indexed skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engine import files, outputs
from pipeline.model import Keyed, Selected
from pipeline.tasks import texts

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.engine.build import Build
    from serve.contract import Record


def settings(_build: Build, _source: str) -> list[str]:
    """The digest of the step's code."""
    return [texts.code_digest("card")]


def ledger(build: Build, source: str) -> Path:
    """Which cards of a source are on disk and what they were made from."""
    return build.paths.manifest("card", source)


def intact(build: Build, source: str) -> bool:
    """Whether the cards on disk are as they were written."""
    return outputs.intact(build.paths.catalog, ledger(build, source))


def run(build: Build, source: str) -> None:
    """Write the card of each indexed skill of a source, and remove those of skills that are gone."""
    owner, pages = wanted(build, source)
    with build.report.timing("card") as count:
        if build.dry:
            outputs.foresee(build.paths.catalog, ledger(build, source), pages, count)
            return
        change = outputs.bring(build.paths.catalog, ledger(build, source), pages, count)
    build.record("card", {}, {owner[path]: "written" for path in change.written}, {owner[path] for path in change.made})


def wanted(build: Build, source: str) -> tuple[dict[str, str], dict[str, outputs.Wanted]]:
    """By path: whose card it is, and how it is made."""
    from pipeline.steps import card

    selected = {row.id: row for row in build.rows("select", source, Selected)}
    described = build.rows("descriptor", source, Keyed)
    base = texts.code_digest("card")
    pages: dict[str, outputs.Wanted] = {}
    owner: dict[str, str] = {}
    for row in described:
        record = selected[row.id].record
        if record is None:
            continue

        def make(row: Keyed = row, record: Record = record) -> str:
            return card.make(record, texts.descriptors(build, selected, [row])[0])

        path = card.card_path(row.id)
        owner[path] = row.id
        pages[path] = outputs.Wanted(files.key(base, row.digest, selected[row.id].mark), make)
    return owner, pages
