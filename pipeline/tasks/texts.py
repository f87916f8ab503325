"""Memoised texts by the rows that name them. What the memo has lost is made again from the sources, and checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.engine import code, files, manifest
from pipeline.model import Keyed, Reading, Selected
from pipeline.steps import USES
from serve.contract import Descriptor
from serve.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engine.build import Build
    from pipeline.model import Found

_readings = msgspec.json.Decoder(Reading)
_descriptors = msgspec.json.Decoder(Descriptor)


def changed_meanwhile(path: str) -> OperatorError:
    """The error for a file that is no longer what `scan` saw a moment ago."""
    return OperatorError(
        "a source changed while it was being indexed", where=path, next_step="run `retrieval build` again"
    )


def readings(build: Build, rows: Sequence[Found | Selected]) -> list[Reading]:
    """The Reading of each row, in order."""
    return [_readings.decode(data) for data in encoded_readings(build, rows)]


def encoded_readings(build: Build, rows: Sequence[Found | Selected]) -> list[bytes]:
    """The Reading of each row as it is kept, in order."""
    held = build.memo.get("scan", [row.key for row in rows])
    return [held[row.key] if row.key in held else manifest.encode(_read_again(row)) for row in rows]


def decode_reading(data: bytes) -> Reading:
    """A Reading as it is kept."""
    return _readings.decode(data)


def _read_again(row: Found | Selected) -> Reading:
    from pipeline.reader import read_skill

    try:
        data = Path(row.path).read_bytes()
    except OSError as error:
        raise changed_meanwhile(row.path) from error
    if files.digest(data) != row.digest:
        raise changed_meanwhile(row.path)
    return read_skill(data, Path(row.path).parent.name)


def make_descriptor(reading: Reading) -> Descriptor:
    """The descriptor step on a reading."""
    from pipeline.steps import descriptor as descriptor_step

    return descriptor_step.make(reading.name, reading.description, reading.tags, reading.headings, reading.head)


def descriptors(build: Build, selected: Mapping[str, Selected], rows: Sequence[Keyed]) -> list[Descriptor]:
    """The Descriptor of each row, in order. selected: the select rows by ID, to make a lost descriptor again."""
    return [_descriptors.decode(data) for data in encoded_descriptors(build, selected, rows)]


def encoded_descriptors(build: Build, selected: Mapping[str, Selected], rows: Sequence[Keyed]) -> list[bytes]:
    """The Descriptor of each row as it is kept, in order."""
    held = build.memo.get("descriptor", [row.key for row in rows])
    lost = [row for row in rows if row.key not in held]
    again = dict(zip((row.id for row in lost), readings(build, [selected[row.id] for row in lost]), strict=True))
    return [held[row.key] if row.key in held else manifest.encode(make_descriptor(again[row.id])) for row in rows]


def decode_descriptor(data: bytes) -> Descriptor:
    """A Descriptor as it is kept."""
    return _descriptors.decode(data)


def terms(
    build: Build, selected: Mapping[str, Selected], rows: Sequence[Keyed], described: Mapping[str, Keyed]
) -> list[bytes]:
    """The lexical item of each row, in order; a lost one is made again from its descriptor."""
    from pipeline.steps import terms as terms_step

    held = build.memo.get("terms", [row.key for row in rows])
    lost = [row for row in rows if row.key not in held]
    again = descriptors(build, selected, [described[row.id] for row in lost])
    made = {row.id: terms_step.make(item, tags(selected[row.id])) for row, item in zip(lost, again, strict=True)}
    return [held[row.key] if row.key in held else made[row.id] for row in rows]


def tags(row: Selected) -> tuple[str, ...]:
    """The tags of an indexed skill."""
    return row.record.tags if row.record else ()


def code_digest(step: str) -> str:
    """The digest of a step's code, from the modules named in USES."""
    return code.digest(USES[step])
