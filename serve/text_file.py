"""Reading a skill's own file for an answer: its text as it stands, and what has to be said about it."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from blake3 import blake3

from serve.contract import Record
from serve.errors import OperatorError

MAX_BYTES = 32 << 20


class TextFile(NamedTuple):
    """A file's text. digest: blake3 hex of its bytes. notes: how the text differs from the bytes, if it does."""

    text: str
    digest: str
    size: int
    notes: tuple[str, ...]


def read(record: Record) -> TextFile:
    """The text of a skill's own file; see `read_path`."""
    return read_path(record.path, record.id)


def read_path(path: str, skill_id: str) -> TextFile:
    """The text of a SKILL.md, line ends and byte order mark included. Raises OperatorError when it cannot be read.

    A link that has taken the place of the file or of a folder above it is followed within the source alone, as the build does.
    """
    try:
        data = _bytes(path, root_of(path, skill_id))
    except FileNotFoundError:
        raise _unreadable("the file is gone since the index was built", path) from None
    except OSError as error:
        raise _unreadable(f"the file cannot be read: {error.strerror or error}", path) from error
    text, notes = _decoded(data)
    return TextFile(text, blake3(data).hexdigest(), len(data), notes)


def root_of(path: str, skill_id: str) -> str:
    """The folder of the source that a skill lies in, by its path and its ID; its own folder where they do not fit together."""
    folder = os.path.dirname(path)
    inside = skill_id.partition(":")[2].replace("/", os.sep)
    end = f"{os.sep}{inside}"
    return folder.removesuffix(end) if folder.endswith(end) else folder


def _bytes(path: str, root: str) -> bytes:
    # Without O_NONBLOCK a pipe put in the file's place would hold the answer up for ever.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        held = os.fstat(descriptor)
        if not stat.S_ISREG(held.st_mode):
            raise _unreadable("what lies there is no regular file any more", path)
        # What was opened is what lies at the real place: a link that is changed meanwhile leads to another file.
        real = os.path.realpath(path, strict=True)
        top = os.path.realpath(root)
        if not real.startswith(os.path.join(top, "")) or not os.path.samestat(held, os.lstat(real)):
            raise _unreadable("a link that leads out of the source has taken its place", path)
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise _unreadable(f"the file is larger than {MAX_BYTES} bytes", path)
    return data


def _decoded(data: bytes) -> tuple[str, tuple[str, ...]]:
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding, "replace"), ("the file is UTF-16; this is its text",)
    try:
        return data.decode("utf-8"), ()
    except UnicodeDecodeError as error:
        where = f"the file is not UTF-8 (first at byte {error.start}); what could not be read is shown as \ufffd"
        return data.decode("utf-8", "replace"), (where,)


def _unreadable(what: str, path: str) -> OperatorError:
    return OperatorError(what, where=path, next_step="run `retrieval build`, and look at the file")
