"""The references' part of a snapshot: documents, sections, their vectors and their own lexical arrays."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from blake3 import blake3

from pipeline.engine import files, manifest
from pipeline.model import Keyed, Problem
from pipeline.steps.section import OVERLAP, TOKENS
from pipeline.tasks.references import embed, layout, measure, terms
from pipeline.tasks.references.rows import DocumentRow, SectionRow
from serve.contract import ReferenceCounts, ReferencesInfo
from serve.lanes import postings
from serve.references import contract
from serve.references.contract import Document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.engine.build import Build
    from pipeline.engine.generation import GenerationWriter
    from pipeline.tasks.assembly import Old


class Rows(NamedTuple):
    """All rows in the order of the snapshot, with what names their lexical items and vectors, and the documents."""

    documents: list[Document]
    sections: list[SectionRow]
    counted: list[Keyed]
    embedded: list[Keyed]


def _inputs(build: Build) -> str:
    """A digest over everything the parts are made from, told by the manifests without decoding them."""
    names = [source.name for source in build.references]
    paths = [build.paths.manifest(step, name) for name in names for step in ("document", "section", "terms", "embed")]
    paths += [build.paths.problems(name) for name in names]
    return files.key(*layout.settings(build), *map(build.digests.of, paths))


def gather(build: Build) -> Rows:
    """What the manifests say. Only for tasks that come after `embed`."""
    documents: list[tuple[DocumentRow, str]] = []
    sections: list[SectionRow] = []
    keyed: dict[str, tuple[Keyed, Keyed]] = {}
    for source in build.references:
        documents += [(row, source.name) for row in build.rows("document", source.name, DocumentRow)]
        sections += build.rows("section", source.name, SectionRow)
        pair = [{row.id: row for row in build.rows(step, source.name, Keyed)} for step in ("terms", "embed")]
        keyed.update((name, (row, pair[1][name])) for name, row in pair[0].items())
    sections.sort(key=lambda row: row.section.document.encode("utf-8"))  # stable: from top to bottom within each
    cut = {name: list(rows) for name, rows in groupby(sections, key=lambda row: row.section.document)}
    listed = [_document(row, source, cut.get(row.id, [])) for row, source in documents]
    return Rows(
        sorted(listed, key=lambda row: row.id.encode("utf-8")),
        sections,
        [keyed[row.id][0] for row in sections],
        [keyed[row.id][1] for row in sections],
    )


def _document(row: DocumentRow, source: str, sections: Sequence[SectionRow]) -> Document:
    named = next((name for item in sections for name in (item.section.title, *item.section.headings) if name), "")
    return Document(
        id=row.id,
        source=source,
        path=row.path,
        file=row.file,
        title=named or row.path.rpartition("/")[2].rpartition(".")[0],
        digest=row.digest,
        bytes=row.bytes,
        sections=len(sections),
        notes=sections[0].notes if sections else ("no_text",),
    )


def put(build: Build, writer: GenerationWriter, old: Old | None) -> ReferencesInfo:
    """Write the parts; what did not change is taken over from the generation before."""
    inputs, kept = _inputs(build), old.manifest.references if old else msgspec.UNSET
    if old is not None and kept is not msgspec.UNSET and kept.inputs == inputs:
        writer.keep(*(name for name in old.manifest.files if name.startswith("references-")))
        return kept
    rows = gather(build)
    dimension = _put(build, writer, rows)
    return ReferencesInfo(
        inputs=inputs,
        documents=len(rows.documents),
        sections=len(rows.sections),
        dimension=dimension,
        chunk_tokens=TOKENS,
        overlap_tokens=OVERLAP,
        counted_by=measure.name(build.identity.kind),
        sources=dict(counts(build, rows)),
    )


def _put(build: Build, writer: GenerationWriter, rows: Rows) -> int:
    """Write all of them anew; returns the dimension of the vectors."""
    writer.put(contract.DOCUMENTS, b"".join(manifest.encode(row) + b"\n" for row in rows.documents))
    lines = [manifest.encode(row.section) + b"\n" for row in rows.sections]
    writer.put_lines(contract.SECTIONS, contract.SECTIONS_INDEX, lines)
    vectors = embed.vectors(build, rows.sections, rows.embedded)
    writer.put_array(contract.VECTORS, vectors)
    arrays = postings.assemble(terms.items(build, rows.sections, rows.counted))
    for name, array in arrays.items():
        writer.put_array(f"{contract.LEXICAL_PREFIX}{name}.npy", array)
    return int(vectors.shape[1])


def counts(build: Build, rows: Rows) -> Iterator[tuple[str, ReferenceCounts]]:
    """For each source what was found and what became of it."""
    for source in build.references:
        mine = [row for row in rows.documents if row.source == source.name]
        problems = len(manifest.load(build.paths.problems(source.name), Problem))
        digest = blake3("".join(f"{row.digest}  {row.path}\n" for row in mine).encode("utf-8")).hexdigest()
        yield (
            source.name,
            ReferenceCounts(
                path=str(source.path),
                found=len(mine) + problems,
                documents=len(mine),
                problem=problems,
                sections=sum(row.sections for row in mine),
                bytes=sum(row.bytes for row in mine),
                digest=digest,
            ),
        )
