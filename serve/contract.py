"""The contract between building and answering: what a published snapshot holds.

`pipeline` writes these types, `serve` reads them; nothing else is shared. A change that an older reader would
misunderstand raises `CONTRACT_VERSION`, and readers refuse what they do not know by name.
"""

from __future__ import annotations

import msgspec

CONTRACT_VERSION = 1

# Order of the fields in every lexical array (term frequencies, lengths): part of the contract.
LEXICAL_FIELDS = ("name", "description", "triggers", "headings", "head", "body")


class EmbedderIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what vector a text gets. Part of every vector's key.

    kind: "builtin", "fastembed" or "endpoint". model: its name. digest: blake3 hex of the weights, or "" when the
    provider does not give them. dimension: length of a vector. query_prefix, passage_prefix: put before each text.
    recipe: name of the rule that makes the embedded text out of a descriptor.
    """

    kind: str
    model: str
    digest: str
    dimension: int
    query_prefix: str = ""
    passage_prefix: str = ""
    recipe: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One indexed skill as every answer shows it. `id` is "source:relative/folder"."""

    id: str
    name: str
    description: str
    source: str
    state: str  # hidden, cold or archived: a native skill is suppressed, not indexed
    categories: tuple[str, ...]
    tags: tuple[str, ...]
    path: str  # absolute path of the SKILL.md
    digest: str  # blake3 hex of the SKILL.md's bytes
    package_digest: str  # blake3 hex over the package's file names, modes and contents
    files: int  # bundled files beside the SKILL.md
    bytes: int  # size of the whole package
    harness: str = ""  # the harness whose tree the source is, "" for a plain library
    native_in: tuple[str, ...] = ()  # harnesses that already show a skill of this name
    hidden_in: tuple[str, ...] = ()  # harnesses where it is installed but kept out of the prompt
    duplicates: tuple[str, ...] = ()  # IDs that were folded into this one
    aliases: tuple[str, ...] = ()  # other paths (links) that lead to the same file
    diagnostics: tuple[str, ...] = ()


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """What a skill says about itself, cut down for ranking and reading. All texts are plain, one line each.

    In a snapshot `head` holds its first `SNAPSHOT_HEAD` characters: ranking reads the lexical index, people the file itself.

    purpose: the description without trigger and limit clauses. triggers: "use when" clauses. limits: "not for" clauses.
    headings: the body's headings, code blocks left out. head: start of the body, at most 4,000 characters.
    short: the text that is embedded.
    """

    name: str
    purpose: str
    triggers: tuple[str, ...]
    limits: tuple[str, ...]
    headings: tuple[str, ...]
    head: str
    short: str


class FileEntry(msgspec.Struct, frozen=True):
    """One file of a snapshot: its size in bytes and blake3 (32 hex digits)."""

    size: int
    digest: str


class StoreInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Where the vector store of record is, so that a reader can rank through it in server and cloud mode. No secrets."""

    mode: str  # embedded, server or cloud
    collection: str
    host: str = ""
    port: int = 0
    ssl: bool = False
    tenant: str = ""
    database: str = ""


class ReferenceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One source of references. path: its folder. found = documents + problem. digest: blake3 hex over its files' digests."""

    path: str
    found: int
    documents: int
    problem: int
    sections: int
    bytes: int
    digest: str


class ReferencesInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a snapshot says of its references; `serve.references.contract` has the rest.

    inputs: digest over everything their parts were made from. dimension: of their vectors. chunk_tokens: the most a row
    has. overlap_tokens: how many of them a long section's next row repeats. counted_by: whose tokens these are.
    """

    inputs: str
    documents: int
    sections: int
    dimension: int
    chunk_tokens: int
    overlap_tokens: int
    counted_by: str
    sources: dict[str, ReferenceCounts]


class SnapshotManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`manifest.json` of a generation. The generation's name is the digest of this file, so equal inputs give equal names.

    endpoint: URL of the embedding endpoint, "" for other kinds. inputs: digest over everything the snapshot was made from.
    counts: per source and status ("found", "indexed", "duplicate", "suppressed", "review", "problem") how many skills.
    references: left out where no source of that kind is configured.
    """

    contract: int
    skills: int
    embedder: EmbedderIdentity
    endpoint: str
    store: StoreInfo
    inputs: str
    counts: dict[str, dict[str, int]]
    files: dict[str, FileEntry]
    references: ReferencesInfo | msgspec.UnsetType = msgspec.UNSET


class Pointer(msgspec.Struct, frozen=True, kw_only=True):
    """`current.json`: which generation readers use and when it was published (seconds since the epoch)."""

    contract: int
    generation: str
    published_at: float


# Files of a generation. Arrays are .npy, row i of each belongs to the i-th ID in ascending order of its UTF-8 bytes.
MANIFEST = "manifest.json"
RECORDS, RECORDS_INDEX = "records.jsonl", "records.npy"
DESCRIPTORS, DESCRIPTORS_INDEX = "descriptors.jsonl", "descriptors.npy"
VECTORS = "vectors.npy"
FACETS = "facets.msgpack"
KEYS = "keys.npy"
LEXICAL_PREFIX = "lexical-"
SNAPSHOT_HEAD = 1_000
POINTER = "current.json"
