"""Lexical items of a source's sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engine import code, files, manifest
from pipeline.engine.items import Item
from pipeline.model import Keyed
from pipeline.steps import USES
from pipeline.tasks.references import texts
from pipeline.tasks.references.rows import SectionRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.engine.build import Build


def settings(_build: Build, _source: str) -> list[str]:
    """The digest of the step's code."""
    return [code.digest(USES["passage"])]


def count_all(rows: Sequence[texts.Said]) -> list[bytes]:
    """The lexical item of each row."""
    from pipeline.steps import passage

    return [passage.item(*row) for row in rows]


def run(build: Build, source: str) -> None:
    """Count the terms of each section of a source."""
    path = build.paths.manifest("terms", source)
    sections = build.rows("section", source, SectionRow)
    base = code.digest(USES["passage"])
    items = [Item(row.id, files.key(base, row.digest), place) for place, row in enumerate(sections)]

    def begin(batch: Sequence[Item]) -> Callable[[], list[bytes]]:
        return build.workers.start(count_all, list(texts.said(build, [sections[item.place] for item in batch])))

    before = {row.id: row for row in manifest.previous(path, Keyed)}
    with build.resolving("terms") as resolver:
        rows, ran = resolver.rows(
            items, before, lambda item, value: Keyed(id=item.id, key=item.key, digest=files.digest(value)), begin
        )
        manifest.store(path, rows)
    old, new = ({row.id: row.digest for row in side} for side in (before.values(), rows))
    build.record("terms", old, new, ran)


def items(build: Build, rows: Sequence[SectionRow], counted: Sequence[Keyed]) -> list[bytes]:
    """The lexical item of each row, in order; what the memo has lost is made again."""
    held = build.memo.get("terms", [row.key for row in counted])
    lost = [row for row, key in zip(rows, counted, strict=True) if key.key not in held]
    again = dict(zip((row.id for row in lost), count_all(list(texts.said(build, lost))), strict=True))
    return [held[key.key] if key.key in held else again[row.id] for row, key in zip(rows, counted, strict=True)]
