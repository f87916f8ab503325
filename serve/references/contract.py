"""What a snapshot holds of references: documents, and their sections as answers name them.

`pipeline` writes these types, `serve` reads them. Texts are not among them: an answer quotes the file as it is then.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

# Files of a generation that has references. Row i of each belongs to section i: documents in ascending order of the
# UTF-8 bytes of their IDs, the sections of each from top to bottom.
DOCUMENTS = "references-documents.jsonl"
SECTIONS, SECTIONS_INDEX = "references-sections.jsonl", "references-sections.npy"
VECTORS = "references-vectors.npy"
LEXICAL_PREFIX = "references-lexical-"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One Markdown file of a source. `id` is "source:relative/path".

    file: absolute path. digest: blake3 hex (64 digits) of the bytes. bytes: how many. title: from the front matter, else
    the first heading, else the file's name. sections: how many rows the index has of it. notes: what was unusual, such as
    the encoding.
    """

    id: str
    source: str
    path: str
    file: str
    title: str
    digest: str
    bytes: int
    sections: int
    notes: tuple[str, ...] = ()


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the index: the text below one heading, or a part of it when it is long.

    id: the document's ID, "#" and an anchor, for a later part "~" and its number; the text before the first heading has
    the document's ID. root: the source's folder, which no link may lead out of. digest, bytes: of the whole file.
    title: of the front matter, "" for none. headings: the path of headings down to its own, as they read without markup.
    occurrence: how many sections before it have the same path. top, bottom: the whole section's first and last line, from
    1, both inside. first, last: those of this row. start, end: where this row's text stands in the section's, in
    characters. part of parts: this row's place among those of its section, from 1. text: blake3 hex (32 digits) of the
    section's text. tokens: how many this row has.
    """

    id: str
    document: str
    source: str
    path: str
    file: str
    root: str
    digest: str
    bytes: int
    title: str
    headings: tuple[str, ...]
    occurrence: int
    top: int
    bottom: int
    first: int
    last: int
    start: int
    end: int
    part: int
    parts: int
    text: str
    tokens: int


def heading_path(title: str, headings: Sequence[str]) -> str:
    """The path of headings on one line ("Guide > Install > Linux"), the document's title first unless it begins with it."""
    path = list(headings)
    if title and (not path or path[0].casefold() != title.casefold()):
        path.insert(0, title)
    return " > ".join(path)
