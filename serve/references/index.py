"""The references of one generation, opened for questions: sections, vectors, and a lexical lane of their own."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from serve import ranking
from serve.contract import ReferencesInfo
from serve.errors import ContractError
from serve.lanes.lexical import LexicalIndex
from serve.references import contract
from serve.references.contract import Document, Section
from serve.snapshot import Snapshot

# Of the lexical fields as the build fills them for sections: own heading, words of the path, nothing, headings above and
# title, and the text in two fields.
WEIGHTS = (3.0, 1.0, 1.0, 1.5, 1.0, 1.0)
LENGTHS = (0.5, 0.5, 0.5, 0.5, 0.75, 0.75)


class ReferenceIndex(NamedTuple):
    """vectors: float32 [sections, dimension], rows of length 1. Everything is mapped and outlives its folder."""

    snapshot: Snapshot
    info: ReferencesInfo
    vectors: npt.NDArray[np.float32]
    lexical: LexicalIndex
    lines: mmap.mmap | bytes
    starts: npt.NDArray[np.uint64]
    documents_data: bytes

    def __len__(self) -> int:
        return self.info.sections

    def section(self, row: int) -> Section:
        """The section of a row."""
        line = self.lines[int(self.starts[row]) : int(self.starts[row + 1])]
        try:
            return msgspec.json.decode(line, type=Section)
        except msgspec.MsgspecError as error:
            raise ContractError(
                f"the published index is damaged: section {row} cannot be read",
                where=str(self.snapshot.folder / contract.SECTIONS),
                next_step="run `retrieval build`; it publishes a sound index again",
            ) from error

    def documents(self) -> list[Document]:
        """All documents in order."""
        return msgspec.json.Decoder(Document).decode_lines(self.documents_data)

    def describe(self, row: int) -> ranking.Described:
        """The texts of a row that the tie-breaker reads."""
        section = self.section(row)
        own = section.headings[-1] if section.headings else section.title
        return ranking.Described(own, " ".join([section.title, *section.headings[:-1]]), (section.path,))


def opened(snapshot: Snapshot) -> ReferenceIndex | None:
    """The references of a snapshot; None where it was made without. Raises FileNotFoundError when it has been removed."""
    info = snapshot.manifest.references
    if info is msgspec.UNSET:
        return None
    folder = snapshot.folder
    prefix = contract.LEXICAL_PREFIX
    names = [name for name in snapshot.manifest.files if name.startswith(prefix)]
    arrays = {name.removeprefix(prefix).removesuffix(".npy"): _array(folder / name) for name in names}
    return ReferenceIndex(
        snapshot=snapshot,
        info=info,
        vectors=_array(folder / contract.VECTORS),  # type: ignore[arg-type]  # by contract
        lexical=LexicalIndex(arrays, weights=WEIGHTS, lengths=LENGTHS),
        lines=_mapped(folder / contract.SECTIONS),
        starts=_array(folder / contract.SECTIONS_INDEX),  # type: ignore[arg-type]  # by contract
        documents_data=(folder / contract.DOCUMENTS).read_bytes(),
    )


def _array(path: Path) -> npt.NDArray[np.generic]:
    array: npt.NDArray[np.generic] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _mapped(path: Path) -> mmap.mmap | bytes:
    with path.open("rb") as file:
        empty = os.fstat(file.fileno()).st_size == 0  # which cannot be mapped
        return b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
