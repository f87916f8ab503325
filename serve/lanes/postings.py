"""The lexical lane's arrays: how they are laid out, made from the skills' items, and changed without a rebuild.

An item is what one skill adds, as bytes in little-endian order with F = len(LEXICAL_FIELDS):

    uint32            T, the number of distinct terms
    uint16[F]         lengths of the fields in tokens
    uint64[T]         hashes of the terms, rising
    uint8[T, F]       how often each term stands in each field, at most 255

The arrays over n skills with P postings of V distinct terms, each a `.npy` file of the snapshot:

    terms    uint64[V]      hashes, rising
    indptr   int64[V + 1]   postings of term i are indptr[i] to indptr[i + 1]
    docs     uint32[P]      rows, rising within a term
    tf       uint8[P, F]
    lengths  uint16[n, F]

They are a function of the items and their order alone, so a changed index equals one made anew, byte for byte.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serve.contract import LEXICAL_FIELDS

Array = NDArray[Any]
Arrays = Mapping[str, Array]

FIELDS = len(LEXICAL_FIELDS)
NAMES = ("terms", "indptr", "docs", "tf", "lengths")
MAX_COUNT = 0xFF
MAX_LENGTH = 0xFFFF

_SPAN = np.int64(1) << 32  # more than any row

_HEAD = struct.Struct(f"<I{FIELDS}H")


def pack_item(hashes: Array, counts: Array, lengths: Sequence[int]) -> bytes:
    """The item of one skill. hashes: uint64[T], rising. counts: uint8[T * F], row by row. lengths: tokens per field."""
    head = _HEAD.pack(len(hashes), *(min(length, MAX_LENGTH) for length in lengths))
    return head + hashes.astype("<u8", copy=False).tobytes() + counts.tobytes()


def assemble(items: Sequence[bytes]) -> dict[str, Array]:
    """The arrays over all skills; an item's place in the sequence is its row."""
    hashes, rows, tf, lengths = _unpack(items)
    order = _by_hash(hashes)
    hashes = hashes[order]
    starts = np.flatnonzero(_firsts(hashes))
    return {
        "terms": hashes[starts],
        "indptr": np.append(starts, len(hashes)).astype(np.int64),
        "docs": rows[order],
        "tf": _rows(_packed(tf)[order]),
        "lengths": lengths,
    }


def replace(old: Arrays, rows: NDArray[np.int64], added: Mapping[int, bytes], total: int) -> dict[str, Array]:
    """The arrays after some skills went, moved or came: equal to `assemble` over the new sequence of items.

    rows: int64[n_old], the new row of each old row, -1 where it is gone or its item is replaced.
    added: new row → item, for every row that `rows` does not fill. total: the new number of rows.
    Raises ValueError when the two together do not fill every row exactly once.
    """
    places = sorted(added)
    filled = np.sort(np.concatenate([rows[rows >= 0], np.array(places, dtype=np.int64)]))
    if len(rows) != len(old["lengths"]) or not np.array_equal(filled, np.arange(total)):
        raise ValueError("old and added skills do not fill the rows of the index exactly once")
    hashes, new_rows, new_tf, new_lengths = _unpack([added[place] for place in places])
    docs, tf, counts = _moved(old, rows)
    terms, counts = _with_new_terms(old["terms"], counts, hashes)
    place = np.searchsorted(terms, hashes)
    at = np.array(places, dtype=np.int64)[new_rows]
    order = np.lexsort((at, place))
    where = _insertion_points(docs, counts, at[order], place[order])
    totals = counts + np.bincount(place, minlength=len(terms))
    lengths = np.zeros((total, FIELDS), dtype=np.uint16)
    lengths[rows[rows >= 0]] = old["lengths"][rows >= 0]
    lengths[places] = new_lengths
    kept = totals > 0
    return {
        "terms": terms[kept],
        "indptr": _offsets(totals[kept]),
        "docs": np.insert(docs, where, at[order].astype(np.uint32)),
        "tf": _rows(np.insert(tf, where, _packed(new_tf)[order])),
        "lengths": lengths,
    }


def _unpack(
    items: Sequence[bytes],
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16]]:
    """Hashes, rows and counts of all postings, skill by skill, and the lengths of the fields."""
    heads = [_HEAD.unpack_from(item) for item in items]
    sizes = [head[0] for head in heads]
    hashes = [np.frombuffer(item, "<u8", size, _HEAD.size) for item, size in zip(items, sizes, strict=True)]
    tf = [
        np.frombuffer(item, np.uint8, size * FIELDS, _HEAD.size + 8 * size)
        for item, size in zip(items, sizes, strict=True)
    ]
    return (
        np.concatenate([np.empty(0, np.uint64), *hashes]),
        np.repeat(np.arange(len(items), dtype=np.uint32), sizes),
        np.concatenate([np.empty(0, np.uint8), *tf]).reshape(-1, FIELDS),
        np.array([head[1:] for head in heads], dtype=np.uint16).reshape(-1, FIELDS),
    )


def _by_hash(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The order by hash, equal ones as they come. Radix by the top 32 bits leaves next to nothing to the last sort."""
    order = np.argsort((hashes >> np.uint64(32)).astype(np.uint16), kind="stable")
    order = order[np.argsort((hashes >> np.uint64(48)).astype(np.uint16)[order], kind="stable")]
    return order[np.argsort(hashes[order], kind="stable")]


def _firsts(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """True where a run of equal hashes begins."""
    firsts = np.ones(len(hashes), dtype=np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=firsts[1:])
    return firsts


def _packed(tf: NDArray[np.uint8]) -> Array:
    """Counts with one opaque element per posting, which numpy moves many times faster than short rows."""
    return np.ascontiguousarray(tf).view(f"V{FIELDS}").reshape(-1)


def _rows(packed: Array) -> NDArray[np.uint8]:
    return packed.view(np.uint8).reshape(-1, FIELDS)


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each run begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _moved(old: Arrays, rows: NDArray[np.int64]) -> tuple[Array, Array, NDArray[np.int64]]:
    """Old rows and packed counts of the postings that stay, under their new rows, and how many each old term keeps."""
    counts = np.diff(old["indptr"])
    docs = rows.astype(np.int32)[old["docs"]]
    tf = _packed(old["tf"])
    gone = np.flatnonzero(docs < 0)
    if len(gone):
        counts = counts - np.bincount(np.searchsorted(old["indptr"], gone, side="right") - 1, minlength=len(counts))
        docs, tf = np.delete(docs, gone), np.delete(tf, gone)
    kept = rows[rows >= 0]
    if (kept[1:] < kept[:-1]).any():
        order = np.lexsort((docs, np.repeat(np.arange(len(counts)), counts)))
        docs, tf = docs[order], tf[order]
    return docs.astype(np.uint32), tf, counts


def _with_new_terms(
    terms: NDArray[np.uint64], counts: NDArray[np.int64], hashes: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The old terms and those of `hashes` that were not among them, with how many old postings each has."""
    wanted = np.unique(hashes)
    at = np.searchsorted(terms, wanted)
    new = np.ones(len(wanted), dtype=np.bool_)
    inside = at < len(terms)
    new[inside] = terms[at[inside]] != wanted[inside]
    return np.insert(terms, at[new], wanted[new]), np.insert(counts, at[new], 0)


def _insertion_points(docs: Array, counts: NDArray[np.int64], rows: Array, places: Array) -> NDArray[np.int64]:
    """Where in the old postings each new one belongs. rows, places: row and term of the new postings, sorted."""
    starts = _offsets(counts)
    touched = np.unique(places)
    size = counts[touched]
    begins = _offsets(size)
    # The old postings of the touched terms alone, keyed by (term, row), in one sorted array.
    index = np.arange(begins[-1]) + np.repeat(starts[touched] - begins[:-1], size)
    keys = np.repeat(touched, size) * _SPAN + docs[index]
    at = np.searchsorted(keys, places * _SPAN + rows)
    points: NDArray[np.int64] = starts[places] + at - begins[np.searchsorted(touched, places)]
    return points
