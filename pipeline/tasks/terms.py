"""Lexical items of a source's indexed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engine import files, manifest
from pipeline.engine.items import Item
from pipeline.model import Keyed, Selected
from pipeline.tasks import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.engine.build import Build


def settings(_build: Build, _source: str) -> list[str]:
    """The digest of the step's code."""
    return [texts.code_digest("terms")]


def count_all(pairs: Sequence[tuple[bytes, tuple[str, ...]]]) -> list[bytes]:
    """The lexical item of each (encoded descriptor, tags)."""
    from pipeline.steps import terms

    return [terms.make(texts.decode_descriptor(data), tags) for data, tags in pairs]


def run(build: Build, source: str) -> None:
    """Count the terms of each indexed skill of a source."""
    path = build.paths.manifest("terms", source)
    selected = {row.id: row for row in build.rows("select", source, Selected)}
    described = build.rows("descriptor", source, Keyed)
    base = texts.code_digest("terms")
    items = [
        Item(row.id, files.key(base, row.digest, *texts.tags(selected[row.id])), index)
        for index, row in enumerate(described)
    ]

    def begin(batch: Sequence[Item]) -> Callable[[], list[bytes]]:
        rows = [described[item.place] for item in batch]
        made = texts.encoded_descriptors(build, selected, rows)
        pairs = [(item, texts.tags(selected[row.id])) for row, item in zip(rows, made, strict=True)]
        return build.workers.start(count_all, pairs)

    before = {row.id: row for row in manifest.previous(path, Keyed)}
    with build.resolving("terms") as resolver:
        rows, ran = resolver.rows(
            items, before, lambda item, value: Keyed(id=item.id, key=item.key, digest=files.digest(value)), begin
        )
        manifest.store(path, rows)
    old, new = ({row.id: row.digest for row in side} for side in (before.values(), rows))
    build.record("terms", old, new, ran)
