"""Reading a published snapshot: memory-mapped, never locked, and noticing a newer generation at the cost of one stat."""

from __future__ import annotations

import functools
import mmap
import os
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from serve import contract
from serve.contract import Descriptor, Pointer, Record, SnapshotManifest
from serve.errors import ContractError, NoIndexError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_RETRIES = 5


class Snapshot:
    """One generation, opened whole. It stays readable after its folder is removed (except on Windows, which keeps it).

    vectors: float32 [skills, dimension], rows of length 1. lexical: the lexical lane's arrays by name.
    """

    def __init__(self, folder: Path, pointer: Pointer) -> None:
        self.folder = folder
        self.generation = pointer.generation
        self.published_at = pointer.published_at
        self.manifest = _manifest(folder)
        self._check_sizes()
        self._records = _mapped(folder / contract.RECORDS)
        self._descriptors = _mapped(folder / contract.DESCRIPTORS)
        self._records_index = self._array(contract.RECORDS_INDEX)
        self._descriptors_index = self._array(contract.DESCRIPTORS_INDEX)
        self.vectors: npt.NDArray[np.float32] = self._array(contract.VECTORS)  # type: ignore[assignment]  # by contract
        prefix = contract.LEXICAL_PREFIX
        names = [name for name in self.manifest.files if name.startswith(prefix)]
        self.lexical: Mapping[str, npt.NDArray[np.generic]] = {
            name.removeprefix(prefix).removesuffix(".npy"): self._array(name) for name in names
        }
        self._facets: dict[str, dict[str, bytes]] = msgspec.msgpack.decode((folder / contract.FACETS).read_bytes())

    def __len__(self) -> int:
        return self.manifest.skills

    def _array(self, name: str) -> npt.NDArray[np.generic]:
        try:
            array: npt.NDArray[np.generic] = np.load(self.folder / name, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise self._damaged(name, error) from error
        return array

    def _damaged(self, name: str, why: object) -> ContractError:
        return ContractError(
            f"the published index is damaged: {name} cannot be read ({why})",
            where=str(self.folder / name),
            next_step="run `retrieval build`; it publishes a sound index again",
        )

    def _check_sizes(self) -> None:
        for name, entry in self.manifest.files.items():
            size = (self.folder / name).stat().st_size
            if size != entry.size:
                raise ContractError(
                    f"the published index is damaged: {name} has {size} bytes instead of {entry.size}",
                    where=str(self.folder / name),
                    next_step="run `retrieval build`; it publishes a sound index again",
                )

    def record(self, row: int) -> Record:
        """The record of a row."""
        try:
            return msgspec.json.decode(_line(self._records, self._records_index, row), type=Record)
        except msgspec.MsgspecError as error:
            raise self._damaged(contract.RECORDS, error) from error

    def descriptor(self, row: int) -> Descriptor:
        """The descriptor of a row."""
        try:
            return msgspec.json.decode(_line(self._descriptors, self._descriptors_index, row), type=Descriptor)
        except msgspec.MsgspecError as error:
            raise self._damaged(contract.DESCRIPTORS, error) from error

    def row_of(self, skill_id: str) -> int | None:
        """The row of an ID, or None."""
        return self._rows.get(skill_id)

    @functools.cached_property
    def _rows(self) -> dict[str, int]:
        return {skill_id: row for row, skill_id in enumerate(self.ids)}

    @functools.cached_property
    def ids(self) -> list[str]:
        """All IDs in row order."""
        decoder = msgspec.json.Decoder(_OnlyId)
        try:
            return [item.id for item in decoder.decode_lines(self._records[:])]
        except msgspec.MsgspecError as error:
            raise self._damaged(contract.RECORDS, error) from error

    def rows_with(self, text: bytes) -> Iterator[int]:
        """The rows whose record, as it is stored, contains a text."""
        at = self._records.find(text)
        while at >= 0:
            row = int(np.searchsorted(self._records_index, at, side="right")) - 1
            yield row
            at = self._records.find(text, int(self._records_index[row + 1]))

    def facet(self, name: str) -> dict[str, npt.NDArray[np.uint32]]:
        """Rows by value of a facet: source, state, category, native_in or name (casefolded)."""
        return {value: np.frombuffer(rows, dtype="<u4") for value, rows in self._facets.get(name, {}).items()}

    def facet_rows(self, name: str, value: str) -> npt.NDArray[np.uint32]:
        """The rows with one value of a facet."""
        return np.frombuffer(self._facets.get(name, {}).get(value, b""), dtype="<u4")

    def close(self) -> None:
        """Let go of the files now. Arrays handed out stay valid until they are dropped."""
        for data in (self._records, self._descriptors):
            if isinstance(data, mmap.mmap):
                data.close()


class _OnlyId(msgspec.Struct):
    id: str


def _mapped(path: Path) -> mmap.mmap | bytes:
    """A file's bytes, mapped: they outlive the file's name, and go with the last who uses them."""
    with path.open("rb") as file:
        empty = os.fstat(file.fileno()).st_size == 0  # which cannot be mapped
        return b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _line(data: mmap.mmap | bytes, index: npt.NDArray[np.generic], row: int) -> bytes:
    return data[int(index[row]) : int(index[row + 1])]


def _manifest(folder: Path) -> SnapshotManifest:
    data = (folder / contract.MANIFEST).read_bytes()
    version = msgspec.json.decode(data, type=_Version).contract
    if version != contract.CONTRACT_VERSION:
        raise ContractError(
            f"the index follows contract {version}, this program reads contract {contract.CONTRACT_VERSION}",
            where=str(folder / contract.MANIFEST),
            next_step="run `retrieval build` with the version of Retrieval that answers",
        )
    return msgspec.json.decode(data, type=SnapshotManifest)


class _Version(msgspec.Struct):
    contract: int


class Live:
    """The newest snapshot of a data directory, looked up at each use."""

    def __init__(self, data_dir: Path) -> None:
        self.root = data_dir / "snapshots"
        self._stamp: tuple[int, int, int] | None = None
        self._snapshot: Snapshot | None = None

    def current(self) -> Snapshot:
        """The snapshot the pointer names now. Raises NoIndexError or ContractError with the next step."""
        path = self.root / contract.POINTER
        for _attempt in range(_RETRIES):
            stamp = self._pointer_stamp(path)
            if stamp == self._stamp and self._snapshot is not None:
                return self._snapshot
            try:
                pointer = msgspec.json.decode(path.read_bytes(), type=Pointer)
                fresh = Snapshot(self.root / pointer.generation, pointer)
            except FileNotFoundError:
                continue  # replaced and collected between reading the pointer and opening: look again
            except msgspec.MsgspecError as error:
                raise _unreadable(path, error) from error
            # The old snapshot is dropped, not closed: another thread may be reading from it.
            self._stamp, self._snapshot = stamp, fresh
            return fresh
        raise _unreadable(path, "the generation it names is not there")

    def _pointer_stamp(self, path: Path) -> tuple[int, int, int]:
        try:
            stat = path.stat()
        except FileNotFoundError:
            raise NoIndexError(
                "there is no index yet", where=str(self.root), next_step="run `retrieval build`"
            ) from None
        return (stat.st_ino, stat.st_mtime_ns, stat.st_size)


def _unreadable(path: Path, why: object) -> ContractError:
    return ContractError(
        f"the published index cannot be read: {why}", where=str(path), next_step="run `retrieval build`"
    )
