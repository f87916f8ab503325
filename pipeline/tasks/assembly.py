"""Assembling a snapshot from what the manifests name.

Rows that did not change are taken from the generation before; the result is the same, byte for byte, as from nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from pipeline.engine import files, generation, manifest
from pipeline.model import Keyed, Selected
from pipeline.tasks import embed, texts
from serve import contract
from serve.contract import SnapshotManifest
from serve.lanes import postings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeline.engine.build import Build
    from pipeline.engine.generation import GenerationWriter

RECORD, DESCRIPTOR, TERMS, VECTOR = range(4)


class Entry(NamedTuple):
    """One indexed skill with the rows that name its parts."""

    source: str
    selected: Selected
    descriptor: Keyed
    terms: Keyed
    embed: Keyed

    @property
    def id(self) -> str:
        """The skill's ID."""
        return self.selected.id


class Old:
    """The generation before, as far as it is sound: where each of its rows is and what its parts were made from."""

    def __init__(self, folder: Path, held: SnapshotManifest) -> None:
        self.folder = folder
        self.manifest = held
        data = (folder / contract.RECORDS).read_bytes()
        self.rows = {item.id: row for row, item in enumerate(msgspec.json.Decoder(_OnlyId).decode_lines(data))}
        self.keys = self.array(contract.KEYS)

    def array(self, name: str) -> npt.NDArray[np.generic]:
        """One of its arrays, mapped."""
        array: npt.NDArray[np.generic] = np.load(self.folder / name, mmap_mode="r", allow_pickle=False)
        return array

    def same(self, entries: Sequence[Entry], keys: npt.NDArray[np.uint8], part: int) -> npt.NDArray[np.int64]:
        """For each entry the old row that has an equal part, else -1."""
        rows = np.array([self.rows.get(entry.id, -1) for entry in entries], dtype=np.int64)
        if len(rows) and len(self.keys):
            equal = (np.asarray(self.keys)[rows, part] == keys[:, part]).all(axis=1)
            rows[~equal] = -1
        else:
            rows[:] = -1
        return rows


class _OnlyId(msgspec.Struct):
    id: str


def gather(build: Build) -> list[Entry]:
    """All indexed skills in ascending order of their IDs' UTF-8 bytes."""
    entries = []
    for source in build.sources:
        keyed = {
            step: {row.id: row for row in build.rows(step, source.name, Keyed)}
            for step in ("descriptor", "terms", "embed")
        }
        entries += [
            Entry(source.name, row, keyed["descriptor"][row.id], keyed["terms"][row.id], keyed["embed"][row.id])
            for row in build.rows("select", source.name, Selected)
            if row.record is not None
        ]
    return sorted(entries, key=lambda entry: entry.id.encode("utf-8", "surrogatepass"))


def old_generation(root: Path) -> Old | None:
    """The current generation, if there is one and every byte of it is as it was published."""
    pointer = generation.current(root)
    held = generation.read_manifest(root / pointer.generation) if pointer else None
    if pointer is None or held is None or generation.damaged(root / pointer.generation, held):
        return None
    return Old(root / pointer.generation, held)


def keys_of(entries: Sequence[Entry]) -> npt.NDArray[np.uint8]:
    """What each part of each row was made from: uint8 [rows, 4 parts, 16 bytes]."""
    hexes = [
        files.digest(manifest.encode(entry.selected.record))
        + entry.descriptor.digest
        + entry.terms.digest
        + entry.embed.key
        for entry in entries
    ]
    return np.frombuffer(bytes.fromhex("".join(hexes)), dtype=np.uint8).reshape(len(entries), 4, 16)


def write(build: Build, writer: GenerationWriter, old: Old | None, counts: dict[str, dict[str, int]]) -> str:
    """Write the generation that the manifests describe; returns its name."""
    entries = gather(build)
    keys = keys_of(entries)
    records = [manifest.encode(entry.selected.record) + b"\n" for entry in entries]
    writer.put_lines(contract.RECORDS, contract.RECORDS_INDEX, records)
    writer.put_lines(contract.DESCRIPTORS, contract.DESCRIPTORS_INDEX, _descriptors(build, entries, keys, old))
    vectors = _vectors(build, entries, keys, old)
    writer.put_array(contract.VECTORS, vectors)
    for name, array in _lexical(build, entries, keys, old).items():
        writer.put_array(f"{contract.LEXICAL_PREFIX}{name}.npy", array)
    writer.put(contract.FACETS, _facets(entries))
    writer.put_array(contract.KEYS, keys)
    identity = msgspec.structs.replace(build.identity, dimension=int(vectors.shape[1]))
    return writer.finish(
        SnapshotManifest(
            contract=contract.CONTRACT_VERSION,
            skills=len(entries),
            embedder=identity,
            endpoint=build.settings.embedder.url if identity.kind == "endpoint" else "",
            store=build.store_info,
            inputs=files.digest(keys.tobytes()),
            counts=counts,
            files={},
        )
    )


def _selected(entries: Sequence[Entry]) -> dict[str, Selected]:
    return {entry.id: entry.selected for entry in entries}


def _descriptors(
    build: Build, entries: Sequence[Entry], keys: npt.NDArray[np.uint8], old: Old | None
) -> list[bytes | memoryview]:
    lines: list[bytes | memoryview] = [b""] * len(entries)
    rows = old.same(entries, keys, DESCRIPTOR) if old else np.full(len(entries), -1)
    if old:
        data = memoryview((old.folder / contract.DESCRIPTORS).read_bytes())
        index = old.array(contract.DESCRIPTORS_INDEX).tolist()
        for position, row in enumerate(rows.tolist()):
            if row >= 0:
                lines[position] = data[index[row] : index[row + 1]]
    fresh = np.flatnonzero(rows < 0).tolist()
    chosen = [entries[position] for position in fresh]
    made = texts.descriptors(build, _selected(chosen), [entry.descriptor for entry in chosen])
    for position, item in zip(fresh, made, strict=True):
        shown = msgspec.structs.replace(item, head=item.head[: contract.SNAPSHOT_HEAD])
        lines[position] = manifest.encode(shown) + b"\n"
    return lines


def _vectors(
    build: Build, entries: Sequence[Entry], keys: npt.NDArray[np.uint8], old: Old | None
) -> npt.NDArray[np.float32]:
    rows = old.same(entries, keys, VECTOR) if old else np.full(len(entries), -1)
    fresh = np.flatnonzero(rows < 0)
    made = embed.vectors(build, [(entries[position].source, entries[position].embed) for position in fresh.tolist()])
    if not old or not len(entries) or len(fresh) == len(entries):
        return made
    held = old.array(contract.VECTORS)
    result = np.empty((len(entries), held.shape[1]), dtype="<f4")
    kept = np.flatnonzero(rows >= 0)
    result[kept] = held[rows[kept]]
    if len(fresh):
        result[fresh] = made
    return result


def _lexical(
    build: Build, entries: Sequence[Entry], keys: npt.NDArray[np.uint8], old: Old | None
) -> dict[str, npt.NDArray[np.generic]]:
    rows = old.same(entries, keys, TERMS) if old else np.full(len(entries), -1)
    # Replacing many rows costs more than assembling all of them again.
    whole = old is None or np.count_nonzero(rows < 0) > len(entries) // 8
    places = range(len(entries)) if whole else np.flatnonzero(rows < 0).tolist()
    chosen = [entries[place] for place in places]
    described = {entry.id: entry.descriptor for entry in chosen}
    items = texts.terms(build, _selected(chosen), [entry.terms for entry in chosen], described)
    if old is None or whole:
        return postings.assemble(items)
    prefix = contract.LEXICAL_PREFIX
    names = [name for name in old.manifest.files if name.startswith(prefix)]
    held = {name.removeprefix(prefix).removesuffix(".npy"): old.array(name) for name in names}
    moved = np.full(len(old.rows), -1, dtype=np.int64)
    moved[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    return postings.replace(held, moved, dict(zip(places, items, strict=True)), len(entries))


def _facets(entries: Sequence[Entry]) -> bytes:
    """Rows by value for the facets that queries filter by."""
    facets: dict[str, dict[str, list[int]]] = {
        name: {} for name in ("source", "state", "category", "native_in", "name")
    }
    for row, entry in enumerate(entries):
        record = entry.selected.record
        if record is None:
            continue
        values = {
            "source": (record.source,),
            "state": (record.state,),
            "category": record.categories,
            "native_in": record.native_in,
            "name": (record.name.casefold(),),
        }
        for name, labels in values.items():
            for label in labels:
                facets[name].setdefault(label, []).append(row)
    packed = {
        name: {label: np.array(rows, dtype="<u4").tobytes() for label, rows in sorted(labels.items())}
        for name, labels in facets.items()
    }
    return msgspec.msgpack.encode(packed)
