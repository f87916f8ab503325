"""Sections of a source's documents: each text is cut once, whatever its file is called and wherever it lies."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pipeline.engine import code, files, manifest
from pipeline.engine.items import Item
from pipeline.steps import USES
from pipeline.tasks.references import measure, texts
from pipeline.tasks.references.rows import DocumentRow, SectionRow
from serve.references.contract import Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipeline.engine.build import Build
    from pipeline.steps.section import Part

_AT_ONCE = 32 << 20  # bytes of documents that are in memory together


class Cut(msgspec.Struct, frozen=True):
    """A document's rows. key: of its memoised parts."""

    id: str
    key: str
    rows: tuple[SectionRow, ...]


def settings(build: Build, name: str) -> list[str]:
    """Digests of the code that cuts and of that which says what is embedded, and where the source lies."""
    return [texts.base(build), _made(build, name)]


def _made(build: Build, name: str) -> str:
    return files.key(code.digest(USES["passage"]), str(build.reference(name).path))


def run(build: Build, name: str) -> None:
    """Cut each document of a source into sections."""
    path = build.paths.manifest("section", name)
    documents = build.rows("document", name, DocumentRow)
    held, made = manifest.previous(path, SectionRow), _made(build, name)
    previous = {
        document: Cut(document, rows[0].key, rows)
        for document, group in groupby(held, key=lambda row: row.section.document)
        for rows in [tuple(group)]
        if rows[0].made == made
    }
    cuts: dict[str, Cut] = {}
    ran: set[str] = set()
    for chunk in _chunks(documents):
        found, computed = _cut(build, name, chunk, previous)
        cuts.update((cut.id, cut) for cut in found)
        ran |= computed
    rows = [row for document in documents for row in cuts[document.id].rows]
    manifest.store_lines(path, rows)
    build.report.step("section").removed += len({row.id for row in held} - {row.id for row in rows})
    old, new = ({row.id: row.digest for row in side} for side in (held, rows))
    build.record("section", old, new, {row.id for row in rows if row.section.document in ran})


def _chunks(documents: Sequence[DocumentRow]) -> Iterator[list[DocumentRow]]:
    """The documents in stretches that may be in memory together."""
    chunk: list[DocumentRow] = []
    size = 0
    for document in documents:
        if chunk and size + document.bytes > _AT_ONCE:
            yield chunk
            chunk, size = [], 0
        chunk.append(document)
        size += document.bytes
    if chunk:
        yield chunk


def _cut(
    build: Build, name: str, documents: Sequence[DocumentRow], previous: dict[str, Cut]
) -> tuple[list[Cut], set[str]]:
    """The rows of some documents, and the IDs of those that had to be cut."""
    base, made = texts.base(build), _made(build, name)
    root, window = str(build.reference(name).path), measure.window(build.identity.kind)
    items = [Item(row.id, texts.key_of(base, row.digest), place) for place, row in enumerate(documents)]

    def begin(batch: Sequence[Item]) -> Callable[[], list[bytes]]:
        data = [texts.read(documents[item.place].file, documents[item.place].digest) for item in batch]
        return build.workers.start(texts.cut_all, data, build.identity.kind)

    def row_of(item: Item, value: bytes) -> Cut:
        taken = texts.decode(value)
        document = documents[item.place]
        whole = _Whole(item.key, made, name, root, document, taken.title, taken.notes, window)
        return Cut(item.id, item.key, tuple(_row(whole, place, part) for place, part in enumerate(taken.parts)))

    with build.resolving("section") as resolver:
        return resolver.rows(items, previous, row_of, begin)


class _Whole(NamedTuple):
    """What the rows of one document have in common."""

    key: str
    made: str
    source: str
    root: str
    document: DocumentRow
    title: str
    notes: tuple[str, ...]
    window: int


def _row(whole: _Whole, place: int, part: Part) -> SectionRow:
    from pipeline.steps import passage

    document = whole.document
    said = passage.windows(whole.title, part.headings, part.content, part.part, whole.window)
    anchor = f"#{part.anchor}" if part.anchor else ""
    later = f"~{part.part}" if part.part > 1 else ""
    own_id = f"{document.id}{anchor}{later}"
    return SectionRow(
        id=own_id,
        key=whole.key,
        made=whole.made,
        place=place,
        digest=files.key(document.path, whole.title, *part.headings, str(part.part), part.content),
        short=files.key(*said),
        notes=whole.notes,
        section=Section(
            id=own_id,
            document=document.id,
            source=whole.source,
            path=document.path,
            file=document.file,
            root=whole.root,
            digest=document.digest,
            bytes=document.bytes,
            title=whole.title,
            headings=part.headings,
            occurrence=part.occurrence,
            top=part.top,
            bottom=part.bottom,
            first=part.first,
            last=part.last,
            start=part.start,
            end=part.end,
            part=part.part,
            parts=part.parts,
            text=part.text,
            tokens=part.tokens,
        ),
    )
