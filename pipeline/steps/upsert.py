"""The upsert step: what the vector store keeps of one skill beside its vector, and the digest that tells rows apart."""

from __future__ import annotations

import msgspec
from blake3 import blake3

from serve.contract import Descriptor, Record

MAX_DESCRIPTION = 1_000  # the whole description is in the snapshot; the store's copy is for reading and filtering
NONE = ("",)  # stands for an empty list: Chroma accepts none, and a key left out would keep its old value

Value = str | list[str]

KEYS = (
    "name",
    "description",
    "source",
    "state",
    "harness",
    "categories",
    "tags",
    "native_in",
    "hidden_in",
    "path",
    "digest",
    "row_key",
)


def row(record: Record, descriptor: Descriptor, vector_key: str) -> tuple[dict[str, Value], str]:
    """A skill's metadata (always exactly KEYS) and its document, the text that was embedded.

    vector_key: what the vector was made from. "row_key" is the digest over all of it: equal keys, equal rows.
    """
    metadata: dict[str, Value] = {
        "name": _text(record.name),
        "description": _text(record.description[:MAX_DESCRIPTION]),
        "source": _text(record.source),
        "state": record.state,
        "harness": record.harness,
        "categories": _list(record.categories),
        "tags": _list(record.tags),
        "native_in": _list(record.native_in),
        "hidden_in": _list(record.hidden_in),
        "path": _text(record.path),
        "digest": record.digest,
    }
    document = _text(descriptor.short)
    metadata["row_key"] = blake3(msgspec.json.encode((metadata, document, vector_key))).hexdigest(length=16)
    return metadata, document


def _list(values: tuple[str, ...]) -> list[str]:
    return [_text(value) for value in values or NONE]


def _text(value: str) -> str:
    """A text that UTF-8 can hold: of a file name in another encoding the odd bytes are replaced."""
    if value.isascii():
        return value
    return value.encode("utf-8", "replace").decode("utf-8")
