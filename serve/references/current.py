"""Finds an indexed section in its file as the file is now: where it stood, or by its heading where the file has changed."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from blake3 import blake3

from serve.decode import decode, is_text
from serve.references.contract import Section
from serve.references.outline import Outline, outline

MAX_BYTES = 64 << 20
SAME, UNTOUCHED, EDITED, MISSING, GONE = "same", "untouched", "edited", "missing", "gone"


class Found(NamedTuple):
    """Where a section is now. state: SAME (the file is as indexed), UNTOUCHED (the file changed, the section did not),
    EDITED, MISSING (its heading is not in the file any more) or GONE (no file that could be read).

    text: of the row, size: of the whole section in characters. first: the text's first line in the file, 0 for none.
    whole: the row is all of its section.
    """

    state: str
    text: str = ""
    first: int = 0
    size: int = 0
    whole: bool = False


class File:
    """A document as it is now. fault: why it cannot be read, "" when it can. digest: blake3 hex of its bytes.

    fault may be given, for a document that is not to be read again.
    """

    def __init__(self, section: Section, fault: str = "") -> None:
        self.fault = fault
        self.modified = ""
        self.digest = ""
        self._data = b""
        if not fault:
            self._read(section)

    def _read(self, section: Section) -> None:
        try:
            self._data, seconds = _bytes(section)
        except FileNotFoundError:
            self.fault = "the file is gone since the index was built"
        except OSError as error:
            self.fault = f"the file cannot be read: {error.strerror or error}"
        else:
            self.modified = moment(datetime.fromtimestamp(seconds, UTC))
            self.digest = blake3(self._data).hexdigest()
            if self.digest != section.digest and not is_text(self._data):
                self.fault = "the file has changed since the index was built, and is no text any more"

    @cached_property
    def outline(self) -> Outline:
        """The file's sections."""
        return outline(decode(self._data).text)

    @cached_property
    def lines(self) -> list[str]:
        """The file's lines as the index counts them."""
        return decode(self._data).text.split("\n")

    def find(self, section: Section) -> Found:
        """Where the section is now."""
        if self.fault:
            return Found(GONE)
        if self.digest == section.digest:
            text = "\n".join(self.lines[section.top - 1 : section.bottom])
            return _row(SAME, text, section.top, section)
        return self._looked_up(section)

    def _looked_up(self, section: Section) -> Found:
        own = section.headings[-1:]
        alike = [item for item in self.outline.sections if item.headings[-1:] == own]
        texts = [item.text(self.outline.lines) for item in alike]
        equal = [place for place, text in enumerate(texts) if _digest(text) == section.text]
        named = [place for place, item in enumerate(alike) if item.headings == section.headings]
        # Among several that read alike the one under the same headings, the same one in order.
        both = [place for place in equal if place in named] or equal
        if both:
            place = min(both, key=lambda at: (alike[at].occurrence != section.occurrence, at))
            return _row(UNTOUCHED, texts[place], alike[place].first, section)
        exact = [place for place in named if alike[place].occurrence == section.occurrence]
        if exact or len(named) == 1:
            place = (exact or named)[0]
            return _row(EDITED, texts[place], alike[place].first, section)
        return Found(MISSING)


def _row(state: str, text: str, top: int, section: Section) -> Found:
    """The row of a section's text: the stretch that was indexed, or in an edited section as much at the same place."""
    start, end = section.start, section.end
    if state == EDITED:
        if section.parts == 1:
            start, end = 0, len(text)
        elif start >= len(text):
            start, end = max(0, len(text) - (end - start)), len(text)
        start = text.rfind("\n", 0, start) + 1
    row = text[start:end]
    return Found(state, row, top + text.count("\n", 0, start), len(text), whole=len(row) == len(text))


def _digest(text: str) -> str:
    return blake3(text.encode("utf-8", "surrogatepass")).hexdigest(length=16)


def moment(when: datetime) -> str:
    """A time as ISO 8601 in UTC, to the second."""
    return when.isoformat(timespec="seconds").replace("+00:00", "Z")


def _bytes(section: Section) -> tuple[bytes, float]:
    """A document's bytes and when it was last changed. Raises OSError, also for what no build would have indexed."""
    place = os.path.join(os.path.realpath(section.root), *section.path.split("/"))
    if os.path.realpath(place) != place:
        raise OSError(0, "a link has taken its place, and links are not followed", section.file)
    # Without O_NONBLOCK a pipe put in the file's place would hold the answer up for ever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(place, flags)
    with open(descriptor, "rb") as file:
        held = os.fstat(descriptor)
        if not stat.S_ISREG(held.st_mode):
            raise OSError(0, "what lies there is no regular file", section.file)
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(0, f"it is larger than {MAX_BYTES} bytes", section.file)
    return data, held.st_mtime
