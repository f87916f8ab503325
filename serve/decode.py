"""Turns a file's bytes into text with plain newlines and no control characters, saying what had to be mended."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

# C0 and C1 controls except tab and the two line ends. YAML refuses them, and a terminal may obey them.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_CONTROL_BYTES = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
_WIDE_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le", "utf32"),  # before UTF-16: its mark begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32-be", "utf32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf16"),
)
_START_MARKS = re.compile("[\ufeff\u200b\u2060\u200e\u200f]")
_START = re.compile("[\\s\ufeff\u200b\u2060\u200e\u200f]*+")
_STRANGE = 10  # of a text, one character in so many may be one that no encoding explains
_SNIFFED = 256  # bytes looked at to recognise UTF-16 without a mark


class Text(NamedTuple):
    """A file's text. crlf: some lines ended in CR LF, which is a fault only where frontmatter has to be found.

    refused_at: offset in `text` of the first dropped character that no YAML may hold, -1 for none.
    """

    text: str
    diagnostics: list[str]
    crlf: bool
    refused_at: int


def decode(data: bytes) -> Text:
    """The text of `data`: never raises. Bytes that no encoding explains become U+FFFD."""
    text, diagnostics = _characters(data)
    text = _without_marks(text, diagnostics)
    crlf = False
    if "\r" in text:
        crlf = "\r\n" in text
        text = text.replace("\r\r\n", "\n").replace("\r\n", "\n")
        if "\r" in text:
            text = text.replace("\r", "\n")
            diagnostics.append("lone_cr")
    refused_at = -1
    if _may_have_control(data) and _CONTROL.search(text):
        refused = _REFUSED.search(text)
        refused_at = refused.start() if refused else -1
        text = _CONTROL.sub("", text)
        diagnostics.append("control_chars")
    return Text(text, diagnostics, crlf, refused_at)


def _characters(data: bytes) -> tuple[str, list[str]]:
    for mark, encoding, diagnostic in _WIDE_BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace"), [diagnostic]
    if b"\0" in data[:_SNIFFED] and (encoding := _unmarked_utf16(data[:_SNIFFED])):
        return data.decode(encoding, "replace"), ["utf16"]
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), ["invalid_utf8"]


def _unmarked_utf16(start: bytes) -> str:
    """The UTF-16 byte order that `start` shows by its zero bytes (Latin text has one in two), or ""."""
    half = len(start) // 2
    if half < 4:
        return ""  # too short to tell
    even, odd = start[0::2].count(0), start[1::2].count(0)
    if odd * 2 > half and even * 8 < half:
        return "utf-16-le"
    if even * 2 > half and odd * 8 < half:
        return "utf-16-be"
    return ""


def _without_marks(text: str, diagnostics: list[str]) -> str:
    """`text` without byte order marks and zero-width characters before its first visible character."""
    start = _START.match(text)
    marks = _START_MARKS.findall(start[0]) if start else []
    if not start or not marks:
        return text
    diagnostics.append("bom" if "\ufeff" in marks else "invisible_chars")
    return _START_MARKS.sub("", start[0]) + text[start.end() :]


def _may_have_control(data: bytes) -> bool:
    # Deleting bytes and comparing lengths is several times faster than searching the text for a class of characters.
    # In UTF-8 every C1 control begins with 0xC2; the zero bytes of other encodings count as controls here.
    return len(data.translate(None, _CONTROL_BYTES)) != len(data) or b"\xc2" in data


def is_text(data: bytes) -> bool:
    """Whether bytes are text in UTF-8, UTF-16 or UTF-32, a few damaged characters aside."""
    text, notes, _crlf, _refused = decode(data)
    if b"\0" in data and not {"utf16", "utf32"} & set(notes):
        return False
    return text.count("\ufffd") * _STRANGE <= len(text)
