"""The store's rows: what each is made from, what it looks like, and whether the store holds it so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.engine import files
from pipeline.tasks import embed, texts
from pipeline.tasks.entries import Entry

if TYPE_CHECKING:
    from pipeline.chroma import Rows, Store
    from pipeline.engine.build import Build


def row_keys(entries: Mapping[str, Entry]) -> dict[str, str]:
    """By ID what the row is made from, as one digest."""
    base = texts.code_digest("upsert")
    # Digests have one length, so putting them one after the other cannot make two different lists equal.
    return {
        skill: files.digest(
            f"{base}{entry.selected.mark}{entry.selected.digest}{entry.descriptor.short}{entry.embed.key}".encode()
        )
        for skill, entry in entries.items()
    }


def rows(build: Build, entries: Sequence[Entry], keys: Mapping[str, str]) -> Rows:
    """The rows of some skills as the store takes them."""
    from pipeline.chroma import Rows
    from pipeline.steps import upsert

    selected = {entry.selected.id: entry.selected for entry in entries}
    described = texts.descriptors(build, selected, [entry.descriptor for entry in entries])
    made = [
        upsert.row(entry.selected.record, item, entry.embed.key)
        for entry, item in zip(entries, described, strict=True)
        if entry.selected.record is not None
    ]
    return Rows(
        ids=[entry.selected.id for entry in entries],
        vectors=embed.vectors(build, [(entry.source, entry.embed) for entry in entries]),
        metadatas=[
            {**metadata, "row_key": keys[entry.selected.id]}
            for entry, (metadata, _text) in zip(entries, made, strict=True)
        ],
        documents=[document for _metadata, document in made],
    )


def disagreements(build: Build, entries: Mapping[str, Entry]) -> Iterator[tuple[str, str]]:
    """What in the store is not as the manifests say: (part, sentence) pairs; part is row or vector."""
    from pipeline.chroma import StoreDamagedError, open_store
    from pipeline.chroma.untouched import untouched

    wanted = row_keys(entries)
    try:
        with untouched(build.chroma) as config, open_store(config, embed.identity_key(build), repair=False) as store:
            store.check()
            held = store.held()
            for skill in sorted(held.keys() - wanted.keys()):
                yield "row", f"{skill} is in the store, but no source has it"
            for skill in sorted(wanted.keys() - held.keys()):
                yield "row", f"{skill} is missing from the store"
            for part, skill in differing(build, entries, wanted, sorted(wanted.keys() & held.keys()), store):
                what = "row in the store is not the one that was written" if part == "row" else _OTHER_VECTOR
                yield part, f"{skill}: its {what}"
    except StoreDamagedError as error:
        yield "row", f"the vector store is damaged: {error.what}"


_OTHER_VECTOR = "vector in the store is not the one that was computed"


def differing(
    build: Build, entries: Mapping[str, Entry], wanted: Mapping[str, str], skills: Sequence[str], store: Store
) -> Iterator[tuple[str, str]]:
    """(part, skill) for each skill whose row or vector in the store is another than the expected one."""
    import numpy as np

    from pipeline.chroma.store import BATCH

    for start in range(0, len(skills), BATCH):
        ids = skills[start : start + BATCH]
        expected, found = rows(build, [entries[key] for key in ids], wanted), store.fetch(ids)
        for place, skill in enumerate(ids):
            if (expected.metadatas[place], expected.documents[place]) != (
                found.metadatas[place],
                found.documents[place],
            ):
                yield "row", skill
            if not np.allclose(expected.vectors[place], found.vectors[place], atol=1e-5):
                yield "vector", skill
