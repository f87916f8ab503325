"""Categorize a source: its manifest says for each skill which categories it has and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pipeline.engine import files, manifest
from pipeline.engine.items import Item
from pipeline.model import Categorized, Found
from pipeline.tasks import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipeline.engine.build import Build


def settings(build: Build, source: str) -> list[str]:
    """Digests of code, taxonomy and of the overrides for this source."""
    return [texts.code_digest("categorize"), build.vocabulary.taxonomy, build.vocabulary.overrides[source]]


Part = tuple[Found, bytes, tuple[str, ...] | None, str]


def categorize_all(parts: Sequence[Part], taxonomy_text: str, taxonomy_path: str) -> list[bytes]:
    """The encoded row of each (found row, encoded reading, override, key)."""
    from pipeline.steps import categorize
    from pipeline.taxonomy import known_taxonomy

    taxonomy = known_taxonomy(taxonomy_text, taxonomy_path)
    values = []
    for row, data, override, key in parts:
        reading = texts.decode_reading(data)
        made = categorize.make(row, reading.head, reading.headings, override, taxonomy)
        values.append(manifest.encode(msgspec.structs.replace(made, key=key)))
    return values


def run(build: Build, source: str) -> None:
    """Give each found skill of a source its categories."""
    path = build.paths.manifest("categorize", source)
    found = build.rows("scan", source, Found)
    overrides = [build.overrides.of(item.id) for item in found]
    base = files.key(texts.code_digest("categorize"), build.taxonomy.digest)
    items = [
        Item(item.id, files.key(base, item.reading, item.folder, repr(override)), index)
        for index, (item, override) in enumerate(zip(found, overrides, strict=True))
    ]

    def begin(batch: Sequence[Item]) -> Callable[[], list[bytes]]:
        rows = [found[item.place] for item in batch]
        parts = [
            (row, data, overrides[item.place], item.key)
            for item, row, data in zip(batch, rows, texts.encoded_readings(build, rows), strict=True)
        ]
        path = build.settings.taxonomy_path
        return build.workers.start(categorize_all, parts, path.read_text(encoding="utf-8"), str(path))

    decoder = msgspec.json.Decoder(Categorized)
    before = {row.id: row for row in manifest.previous(path, Categorized)}
    with build.resolving("categorize") as resolver:
        rows, ran = resolver.rows(
            items,
            before,
            lambda item, value: msgspec.structs.replace(decoder.decode(value), id=item.id),
            begin,
        )
        manifest.store(path, rows)
    build.record("categorize", _digests(before.values()), _digests(rows), ran)


def _digests(rows: Iterable[Categorized]) -> dict[str, str]:
    return {row.id: ", ".join(row.categories) for row in rows}
