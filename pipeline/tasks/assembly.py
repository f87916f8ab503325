"""Assembling a snapshot from what the manifests name.

Rows that did not change are taken from the generation before; the result is the same, byte for byte, as from nothing.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from pipeline.engine import files, generation, manifest
from pipeline.model import Keyed
from pipeline.tasks import embed, texts
from pipeline.tasks.entries import Entry, selected, whole_mark
from serve import contract
from serve.contract import ReferencesInfo, SnapshotManifest
from serve.lanes import postings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeline.engine.build import Build
    from pipeline.engine.generation import GenerationWriter

RECORD, DESCRIPTOR, TERMS, VECTOR = range(4)
Rows = npt.NDArray[np.int64]


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

    def places(self, entries: Sequence[Entry]) -> Rows:
        """For each entry the old row of its ID, else -1."""
        return np.array([self.rows.get(entry.id, -1) for entry in entries], dtype=np.int64)

    def same(self, places: Rows, keys: npt.NDArray[np.uint8], part: int) -> Rows:
        """For each entry the old row that has an equal part, else -1."""
        rows = places.copy()
        if len(rows) and len(self.keys):
            equal = (np.asarray(self.keys)[rows, part] == keys[:, part]).all(axis=1)
            rows[~equal] = -1
        else:
            rows[:] = -1
        return rows

    def unchanged(self, rows: Rows) -> bool:
        """Whether these are all old rows in their old order: whatever is made of them is as it was."""
        return len(rows) == len(self.rows) and np.array_equal(rows, np.arange(len(rows)))


class _OnlyId(msgspec.Struct):
    id: str


def old_generation(root: Path) -> Old | None:
    """The current generation, if every byte of it is as it was published: what is taken over from it is not made again."""
    pointer = generation.current(root)
    held = generation.read_manifest(root / pointer.generation) if pointer else None
    if pointer is None or held is None:
        return None
    folder = root / pointer.generation
    return None if generation.damaged(folder, held) else Old(folder, held)


def terms_of(build: Build, entries: Sequence[Entry]) -> list[Keyed]:
    """The terms row of each entry."""
    rows = {row.id: row for source in build.sources for row in build.rows("terms", source.name, Keyed)}
    return [rows[entry.id] for entry in entries]


def keys_of(entries: Sequence[Entry], counted: Sequence[Keyed]) -> npt.NDArray[np.uint8]:
    """What each part of each row was made from: uint8 [rows, 4 parts, 16 bytes]. counted: the rows' terms."""
    hexes = [
        whole_mark(entry) + entry.descriptor.digest + item.digest + entry.embed.key
        for entry, item in zip(entries, counted, strict=True)
    ]
    return np.frombuffer(bytes.fromhex("".join(hexes)), dtype=np.uint8).reshape(len(entries), 4, 16)


def write(build: Build, writer: GenerationWriter, old: Old | None, counts: dict[str, dict[str, int]]) -> str:
    """Write the generation that the manifests describe; returns its name."""
    entries = build.entries
    counted = terms_of(build, entries)
    keys = keys_of(entries, counted)
    places = old.places(entries) if old else np.full(len(entries), -1, dtype=np.int64)
    rows = [old.same(places, keys, part) if old else places for part in range(4)]
    lexical = _lexical(build, entries, counted, rows[TERMS], old)
    with ThreadPoolExecutor(1) as beside:
        job = beside.submit(_put_lexical, writer, lexical, old)
        _put_records(writer, entries, rows[RECORD], old)
        _put_descriptors(build, writer, entries, rows[DESCRIPTOR], old)
        dimension = _put_vectors(build, writer, entries, rows[VECTOR], old)
        writer.put(contract.FACETS, _facets(entries))
        writer.put_array(contract.KEYS, keys)
        job.result()
    identity = msgspec.structs.replace(build.identity, dimension=dimension)
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
            references=_references(build, writer, old),
        )
    )


def _references(build: Build, writer: GenerationWriter, old: Old | None) -> ReferencesInfo | msgspec.UnsetType:
    if not build.references:
        return msgspec.UNSET
    from pipeline.tasks.references import parts

    return parts.put(build, writer, old)


def _put_records(writer: GenerationWriter, entries: Sequence[Entry], rows: Rows, old: Old | None) -> None:
    fresh = {
        place: manifest.encode(entries[place].selected.record) + b"\n" for place in np.flatnonzero(rows < 0).tolist()
    }
    _put_lines(writer, (contract.RECORDS, contract.RECORDS_INDEX), rows, fresh, old)


def _put_descriptors(
    build: Build, writer: GenerationWriter, entries: Sequence[Entry], rows: Rows, old: Old | None
) -> None:
    places = np.flatnonzero(rows < 0).tolist()
    chosen = [entries[place] for place in places]
    made = texts.descriptors(build, selected(chosen), [entry.descriptor for entry in chosen])
    fresh = {}
    for place, item in zip(places, made, strict=True):
        shown = msgspec.structs.replace(item, head=item.head[: contract.SNAPSHOT_HEAD])
        fresh[place] = manifest.encode(shown) + b"\n"
    _put_lines(writer, (contract.DESCRIPTORS, contract.DESCRIPTORS_INDEX), rows, fresh, old)


def _put_lines(
    writer: GenerationWriter, names: tuple[str, str], rows: Rows, fresh: Mapping[int, bytes], old: Old | None
) -> None:
    """Lines taken over from the generation before, in runs, and fresh ones (by place) between them; then their index."""
    if old is not None and old.unchanged(rows):
        writer.keep(*names)
        return
    lengths = np.zeros(len(rows), dtype=np.int64)
    parts: list[bytes | memoryview] = []
    if old is not None:
        data = memoryview((old.folder / names[0]).read_bytes())
        index = old.array(names[1]).astype(np.int64)
        lengths[rows >= 0] = np.diff(index)[rows[rows >= 0]]
    for place, line in fresh.items():
        lengths[place] = len(line)
    breaks = np.flatnonzero((np.diff(rows) != 1) | (rows[1:] < 0) | (rows[:-1] < 0)) + 1
    edges = [0, *breaks.tolist(), len(rows)] if len(rows) else [0]
    for start, end in itertools.pairwise(edges):
        row = int(rows[start])
        parts.append(fresh[start] if row < 0 else data[index[row] : index[row + end - start]])
    writer.put(names[0], *parts)
    starts = np.zeros(len(rows) + 1, dtype="<u8")
    np.cumsum(lengths, out=starts[1:])
    writer.put_array(names[1], starts)


def _put_vectors(build: Build, writer: GenerationWriter, entries: Sequence[Entry], rows: Rows, old: Old | None) -> int:
    """Write the matrix; returns the dimension."""
    if old is not None and len(rows) and old.unchanged(rows):
        writer.keep(contract.VECTORS)
        return old.manifest.embedder.dimension
    fresh = np.flatnonzero(rows < 0)
    made = embed.vectors(build, [(entries[place].source, entries[place].embed) for place in fresh.tolist()])
    if old is None or len(fresh) == len(entries):
        writer.put_array(contract.VECTORS, made)
        return int(made.shape[1])
    held = old.array(contract.VECTORS)
    result = np.empty((len(entries), held.shape[1]), dtype="<f4")
    kept = np.flatnonzero(rows >= 0)
    result[kept] = held[rows[kept]]
    if len(fresh):
        result[fresh] = made
    writer.put_array(contract.VECTORS, result)
    return int(result.shape[1])


class _Lexical(NamedTuple):
    """What the lexical arrays are made from. whole: all items anew; else the items at `places`, the rest moved over."""

    whole: bool
    places: Sequence[int]
    items: Sequence[bytes]
    rows: Rows


def _lexical(build: Build, entries: Sequence[Entry], counted: Sequence[Keyed], rows: Rows, old: Old | None) -> _Lexical:
    # Replacing many rows costs more than assembling all of them again.
    whole = old is None or np.count_nonzero(rows < 0) > len(entries) // 8
    places = range(len(entries)) if whole else np.flatnonzero(rows < 0).tolist()
    chosen = [entries[place] for place in places]
    described = {entry.id: entry.descriptor for entry in chosen}
    items = texts.terms(build, selected(chosen), [counted[place] for place in places], described)
    return _Lexical(bool(whole), places, items, rows)


def _put_lexical(writer: GenerationWriter, made: _Lexical, old: Old | None) -> None:
    """Write the lexical arrays. Runs beside the rest: it touches nothing of the build's, and numpy lets others work."""
    prefix = contract.LEXICAL_PREFIX
    rows = made.rows
    if old is not None and old.unchanged(rows):
        writer.keep(*(name for name in old.manifest.files if name.startswith(prefix)))
        return
    if old is None or made.whole:
        arrays = postings.assemble(made.items)
    else:
        names = [name for name in old.manifest.files if name.startswith(prefix)]
        held = {name.removeprefix(prefix).removesuffix(".npy"): old.array(name) for name in names}
        moved = np.full(len(old.rows), -1, dtype=np.int64)
        moved[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
        arrays = postings.replace(held, moved, dict(zip(made.places, made.items, strict=True)), len(rows))
    for name, array in arrays.items():
        writer.put_array(f"{prefix}{name}.npy", array)


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
