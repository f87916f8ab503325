"""The rows that the steps of references hand to each other: lines of manifests."""

from __future__ import annotations

import msgspec

from serve.references.contract import Section


class DocumentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One Markdown file of a source. id: "source:path". file: absolute path. digest: blake3 hex (64 digits) of its bytes."""

    id: str
    path: str
    file: str
    digest: str
    bytes: int


class SectionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the index to be. key: of the document's memoised parts; place: which of them this row is.

    made: of what made this row out of them. digest: of all that its lexical item is made of. short: of the texts that are
    embedded. notes: of the document.
    """

    id: str
    key: str
    made: str
    place: int
    digest: str
    short: str
    notes: tuple[str, ...]
    section: Section
