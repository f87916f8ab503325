"""Descriptors of a source's indexed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pipeline.engine import files, manifest
from pipeline.engine.items import Item
from pipeline.model import Keyed, Selected
from pipeline.tasks import texts
from serve.contract import Descriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.engine.build import Build


def settings(_build: Build, _source: str) -> list[str]:
    """The digest of the step's code."""
    return [texts.code_digest("descriptor")]


def describe_all(readings: Sequence[bytes]) -> list[bytes]:
    """The encoded Descriptor of each encoded Reading."""
    return [manifest.encode(texts.make_descriptor(texts.decode_reading(data))) for data in readings]


def run(build: Build, source: str) -> None:
    """Make the descriptor of each indexed skill of a source."""
    path = build.paths.manifest("descriptor", source)
    selected = [row for row in build.rows("select", source, Selected) if row.record]
    base = texts.code_digest("descriptor")
    items = [Item(row.id, files.key(base, row.reading), index) for index, row in enumerate(selected)]
    decoder = msgspec.json.Decoder(Descriptor)

    def begin(batch: Sequence[Item]) -> Callable[[], list[bytes]]:
        readings = texts.encoded_readings(build, [selected[item.place] for item in batch])
        return build.workers.start(describe_all, readings)

    def row_of(item: Item, value: bytes) -> Keyed:
        short = files.digest(decoder.decode(value).short.encode("utf-8", "surrogatepass"))
        return Keyed(id=item.id, key=item.key, digest=files.digest(value), short=short)

    before = {row.id: row for row in manifest.previous(path, Keyed)}
    with build.resolving("descriptor") as resolver:
        rows, ran = resolver.rows(items, before, row_of, begin)
        manifest.store(path, rows)
    old, new = ({row.id: row.digest for row in side} for side in (before.values(), rows))
    build.record("descriptor", old, new, ran)
