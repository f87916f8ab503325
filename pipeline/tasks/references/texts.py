"""The memoised parts of documents. What the memo has lost is made again from the file, and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from blake3 import blake3

from pipeline.engine import code, files
from pipeline.steps import USES
from pipeline.tasks.references import document, measure
from pipeline.tasks.texts import changed_meanwhile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.engine.build import Build
    from pipeline.steps.section import Sectioned
    from pipeline.tasks.references.rows import SectionRow


class Said(NamedTuple):
    """What one row says, in the order in which `pipeline.steps.passage` asks for it. path: of the document."""

    path: str
    title: str
    headings: tuple[str, ...]
    content: str
    part: int


def base(build: Build) -> str:
    """What decides how any document is cut: the code, and by whose tokens it counts."""
    return files.key(code.digest(USES["section"]), measure.name(build.identity.kind))


def key_of(how: str, digest: str) -> str:
    """The key of a document's parts. how: see `base`. digest: of its bytes."""
    return files.key(how, digest)


def read(file: str, digest: str) -> bytes:
    """The bytes of a document as it was seen a moment ago. Raises OperatorError when it has changed since."""
    try:
        data = document.read_bytes(file)
    except OSError as error:
        raise changed_meanwhile(file) from error
    if blake3(data).hexdigest() != digest:
        raise changed_meanwhile(file)
    return data


def cut_all(documents: Sequence[bytes], kind: str) -> list[bytes]:
    """The encoded parts of each document's bytes. kind: of the embedder."""
    from pipeline.steps import section

    spans = measure.spans(kind)
    return [msgspec.msgpack.encode(section.make(data, spans)) for data in documents]


def decode(value: bytes) -> Sectioned:
    """Parts as they are kept."""
    from pipeline.steps.section import Sectioned

    return msgspec.msgpack.decode(value, type=Sectioned)


def said(build: Build, rows: Sequence[SectionRow]) -> Iterator[Said]:
    """What each row says, in order. Rows of one document should stand together: it is decoded once for them."""
    held = build.memo.get("section", list(dict.fromkeys(row.key for row in rows)))
    key, taken = "", None
    for row in rows:
        if taken is None or row.key != key:
            key, value = row.key, held.get(row.key)
            if value is None:
                value = held[key] = cut_all([read(row.section.file, row.section.digest)], build.identity.kind)[0]
            taken = decode(value)
        part = taken.parts[row.place]
        yield Said(row.section.path, taken.title, part.headings, part.content, part.part)
