"""Writing a generation of the snapshot: beside the live one, whole or not at all, made current by one rename."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from pipeline.engine import faults, files
from serve import contract
from serve.contract import FileEntry, Pointer, SnapshotManifest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

_JSON = msgspec.json.Encoder(order="sorted")


class GenerationWriter:
    """A generation under construction in a folder of its own; a file equal to one of `old` is linked, not written again."""

    def __init__(self, root: Path, old: Path | None, old_files: Mapping[str, FileEntry]) -> None:
        self.root = root
        self.old = old
        self.old_files = old_files
        self.entries: dict[str, FileEntry] = {}
        root.mkdir(parents=True, exist_ok=True)
        self.folder = root / f"{files.PART}{secrets.token_hex(6)}"
        self.folder.mkdir()

    def put(self, name: str, *parts: bytes | memoryview) -> None:
        """Add a file made of `parts`."""
        hasher = blake3()
        for part in parts:
            hasher.update(part)
        entry = FileEntry(sum(memoryview(part).nbytes for part in parts), hasher.hexdigest(length=16))
        self.entries[name] = entry
        if self.old is not None and self.old_files.get(name) == entry and _link(self.old / name, self.folder / name):
            return
        with (self.folder / name).open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        faults.reach("generation:file")

    def keep(self, *names: str) -> None:
        """Take files of the old generation over as they are."""
        for name in names:
            if self.old is None:
                raise FileNotFoundError(name)
            if not _link(self.old / name, self.folder / name):
                shutil.copyfile(self.old / name, self.folder / name)
            self.entries[name] = self.old_files[name]

    def put_array(self, name: str, array: npt.NDArray[np.generic]) -> None:
        """Add an array as .npy, version 1 of the format, C order."""
        import numpy as np

        array = np.ascontiguousarray(array)
        header = np.lib.format.header_data_from_array_1_0(array)
        self.put(name, _header(header), array.reshape(-1).view(np.uint8).data)

    def put_lines(self, name: str, index_name: str, lines: Sequence[bytes | memoryview]) -> None:
        """Add JSON lines (each with its newline) and the index of their starts: uint64 [lines + 1]."""
        import numpy as np

        index = np.zeros(len(lines) + 1, dtype="<u8")
        np.cumsum([len(line) for line in lines], out=index[1:])
        self.put(name, b"".join(lines))
        self.put_array(index_name, index)

    def finish(self, manifest: SnapshotManifest) -> str:
        """Put the manifest last and give the folder its name, the manifest's digest. Returns that name."""
        data = _JSON.encode(msgspec.structs.replace(manifest, files=dict(sorted(self.entries.items()))))
        generation = files.digest(data)
        (self.folder / contract.MANIFEST).write_bytes(data)
        files.sync(self.folder)
        faults.reach("generation:complete")
        target = self.root / generation
        if target.is_dir():  # the same content, perhaps damaged since, and perhaps being read: file by file, so that none is ever missing
            for name in (*self.entries, contract.MANIFEST):
                os.replace(self.folder / name, target / name)
        else:
            os.replace(self.folder, target)
        return generation

    def abandon(self) -> None:
        """Remove what was written, if it has not become a generation."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _header(fields: dict[str, object]) -> bytes:
    from io import BytesIO

    import numpy as np

    buffer = BytesIO()
    np.lib.format.write_array_header_1_0(buffer, fields)
    return buffer.getvalue()


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:
        return False  # no hard links on this file system, or the old file is gone: it is written instead
    return True


def point(root: Path, generation: str) -> None:
    """Make a generation current. The one moment at which readers change over.

    The one that was current is touched: what `collect` spares, it spares from now on, not since it was made.
    """
    before = current(root)
    if before is not None and (root / before.generation).is_dir():
        os.utime(root / before.generation)
    pointer = Pointer(contract=contract.CONTRACT_VERSION, generation=generation, published_at=time.time())
    with files.replacing(root / contract.POINTER) as part:
        part.write_bytes(_JSON.encode(pointer))
        files.sync(part)
        faults.reach("generation:pointer")
    files.sync(root)


def current(root: Path) -> Pointer | None:
    """The pointer as it stands, or None when there is none that can be read."""
    try:
        return msgspec.json.decode((root / contract.POINTER).read_bytes(), type=Pointer)
    except (OSError, msgspec.MsgspecError):
        return None


def read_manifest(folder: Path) -> SnapshotManifest | None:
    """The manifest of a generation of this contract, or None."""
    try:
        manifest = msgspec.json.decode((folder / contract.MANIFEST).read_bytes(), type=SnapshotManifest)
    except (OSError, msgspec.MsgspecError):
        return None
    return manifest if manifest.contract == contract.CONTRACT_VERSION else None


def damaged(folder: Path, manifest: SnapshotManifest) -> list[str]:
    """The files of a generation whose bytes are not those it was published with."""
    wrong = []
    for name, entry in sorted(manifest.files.items()):
        try:
            sound = (folder / name).stat().st_size == entry.size and files.digest_file(folder / name) == entry.digest
        except OSError:
            sound = False
        if not sound:
            wrong.append(name)
    if files.digest((folder / contract.MANIFEST).read_bytes()) != folder.name:
        wrong.append(contract.MANIFEST)
    return wrong


def fingerprint(root: Path) -> str:
    """A digest over pointer and current generation by stat alone: differs when anybody has touched them."""
    pointer = current(root)
    if pointer is None:
        return ""
    parts = [pointer.generation]
    try:
        for entry in sorted(os.scandir(root / pointer.generation), key=lambda item: item.name):
            stat = entry.stat()
            parts.append(f"{entry.name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}")
    except OSError:
        return ""
    return files.key(*parts)


def collect(root: Path, keep: str, grace: float = 60.0) -> int:
    """Remove generations that are not `keep` nor the newest other one nor younger than `grace` seconds; parts of killed runs too.

    A reader that opened a removed one keeps its mapped files; one that was about to open it reads the pointer again.
    """
    others = [path for path in root.iterdir() if path.is_dir() and path.name != keep]
    parts = [path for path in others if path.name.startswith(files.PART)]
    old = sorted((path for path in others if path not in parts), key=lambda path: path.stat().st_mtime, reverse=True)
    now = time.time()
    doomed = parts + [path for path in old[1:] if now - path.stat().st_mtime > grace]
    for path in doomed:
        shutil.rmtree(path, ignore_errors=True)
    return len(doomed)
