"""Manifests: what a step says about each item, as JSON lines sorted by ID.

They are written only when they differ, so doit's content check stops the build where nothing changed.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from pipeline.engine import faults, files
from serve.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


class Row(Protocol):
    """A manifest row: a msgspec Struct with an ID."""

    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=Row)
T = TypeVar("T")

_encoder = msgspec.json.Encoder()


def encode(row: object) -> bytes:
    """One row as its manifest line, without the newline. Equal rows give equal bytes."""
    return _encoder.encode(row)


def load(path: Path, row_type: type[T]) -> list[T]:
    """The rows of a manifest that a step has written, in order. Raises OperatorError when it is missing or damaged."""
    try:
        return msgspec.json.Decoder(row_type).decode_lines(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise OperatorError(
            f"a manifest of the build cannot be read: {error}",
            where=str(path),
            next_step="delete that file and run `retrieval build`; it is made again",
        ) from error


class Loaded:
    """Manifests decoded once per run: several steps read the same rows. A file that was replaced is decoded again."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int, int], list[Any]]] = {}

    def load(self, path: Path, row_type: type[T]) -> list[T]:
        """As `load` does, from memory where the file is still the one that was read."""
        try:
            stat = path.stat()
        except OSError:
            return load(path, row_type)
        mark = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        held = self._known.get(path)
        if held is None or held[0] != mark:
            held = (mark, load(path, row_type))
            self._known[path] = held
        return held[1]


def raw(path: Path) -> bytes:
    """The bytes the last run left, b"" when there are none or they are not as they were written."""
    try:
        data = path.read_bytes()
        return data if _sum(path).read_text(encoding="ascii") == files.digest(data) else b""
    except (OSError, UnicodeDecodeError):
        return b""


def decode(data: bytes, row_type: type[T]) -> list[T]:
    """The rows in such bytes; none when they are of another shape."""
    try:
        return msgspec.json.Decoder(row_type).decode_lines(data)
    except msgspec.MsgspecError:
        return []


def previous(path: Path, row_type: type[T]) -> list[T]:
    """The rows the last run left, to be reused; none when there are none, or they are not as they were written.

    A damaged, edited or older manifest is worth no more than a missing one here: its owner is about to write it again.
    """
    return decode(raw(path), row_type)


def store(path: Path, rows: Sequence[Row]) -> bool:
    """Write rows sorted by ID. Returns whether the file changed."""
    return store_lines(path, sorted(rows, key=attrgetter("id")))


def store_lines(path: Path, rows: Iterable[object]) -> bool:
    """Write rows in the order given. Returns whether the file changed."""
    return store_raw(path, _encoder.encode_lines(list(rows)))


def store_raw(path: Path, data: bytes) -> bool:
    """Write lines that are encoded already. Returns whether the file changed."""
    faults.reach(f"manifest:{path.parent.name}")
    changed = files.write(path, data)
    files.write(_sum(path), files.digest(data).encode())
    return changed


def _sum(path: Path) -> Path:
    """Where the digest of a manifest stands, by which a later run knows it again."""
    return path.with_name(f"{path.name}.sum")
