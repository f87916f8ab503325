"""The rows that steps hand to each other. Each is one line of a manifest: sorted, JSON, made of texts and numbers."""

from __future__ import annotations

import msgspec

from serve.contract import Record

Packed = bytes  # under a name of its own: `Found` has a field called bytes


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a source that could not be indexed. The rest of the source is indexed all the same."""

    source: str
    what: str
    where: str
    next: str
    kind: str  # unreadable, vanished, dangling_link, link_loop, outside_link, not_a_file, too_large, ...


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader makes of one SKILL.md's bytes, a pure function of them and the folder's name.

    headings: levels 1 to 4 outside code blocks, in order, at most 64. head: the body's first 4,000 characters.
    body_digest: blake3 hex of the body with white space folded. sketch: bottom-k hashes of the body's shingles, to tell
    near-identical bodies. categories: what the frontmatter's retrieval_categories asks for, unchecked.
    """

    name: str
    description: str
    tags: tuple[str, ...]
    categories: tuple[str, ...]
    hidden: bool
    headings: tuple[str, ...]
    head: str
    body_digest: str
    body_chars: int
    sketch: tuple[int, ...]
    diagnostics: tuple[str, ...]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One skill as `scan` found it: a row of the scan manifest.

    Paths are absolute; `folder` is relative to the source and "/"-separated. `key` names the memoised Reading, `reading`
    is the digest of that Reading's content: a step that works on the Reading is keyed by it, so that a reader's change
    which changes no reading stops here. `sketch` holds the smallest hashes of the Reading's, see `pipeline.steps.select.packed`.
    """

    id: str
    source: str
    folder: str
    path: str
    name: str
    description: str
    tags: tuple[str, ...]
    categories: tuple[str, ...]
    hidden: bool
    digest: str
    key: str
    reading: str
    body_digest: str
    body_chars: int
    sketch: Packed
    package_digest: str
    files: int
    bytes: int
    aliases: tuple[str, ...] = ()
    diagnostics: tuple[str, ...] = ()


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Why a category was given: the rule (override, declared, keyword), the keyword and the field it stood in."""

    category: str
    rule: str
    keyword: str = ""
    field: str = ""


class Categorized(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the categorize manifest. No category means: waits in the review queue (or "uncategorized" by policy)."""

    id: str
    categories: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    diagnostics: tuple[str, ...] = ()
    key: str = ""


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one found skill: a row of the select manifest.

    status: indexed, duplicate, suppressed or review; reason says why in words; winner: for a duplicate, the ID that
    stands for it. record: what answers show, for indexed skills only; mark: a digest of it that does not cover the
    digests of its files (see `pipeline.tasks.entries`). key and reading: see `Found`.
    """

    id: str
    status: str
    reason: str = ""
    winner: str = ""
    path: str = ""
    folder: str = ""
    digest: str = ""
    key: str = ""
    reading: str = ""
    record: Record | None = None
    mark: str = ""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """What the catalog's hub pages say of an indexed skill: a row of the manifest of links."""

    id: str
    name: str
    source: str
    categories: tuple[str, ...]


class Keyed(msgspec.Struct, frozen=True, kw_only=True):
    """A result kept in the memo under `key`: a row of the descriptor, terms and embed manifests.

    digest: of the result's content, what later steps are keyed by. short: for a descriptor, the digest of its short text.
    """

    id: str
    key: str
    digest: str
    short: str = ""
