"""Select: what becomes of each found skill. Indexed, a duplicate of another, suppressed as native, or waiting for review.

Nothing vanishes without a reason: every found skill leaves with exactly one status, and the reason in words.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline.model import Categorized, Found, Selected
from serve.contract import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# A body shorter than this (a stub, a pointer to another file) says too little to call two skills equal: there the
# description must agree as well.
STUB_CHARS = 200
# Estimated share of common four-word shingles above which two bodies under one name are the same skill. Revisions of one
# skill in the public libraries lie above it, different skills that share a name far below.
NEAR = 0.8

# Hashes kept of a sketch: the estimate is off by a tenth at most in two of three cases, and every build reads them all.
SKETCH = 32

_PRIORITY = {"hidden": 0, "cold": 1, "archived": 2}
EVERYWHERE = "*"


@dataclass(frozen=True)
class Origin:
    """What the configuration says of a source: its state, its harness ("" for none), its group and its place in the file."""

    name: str
    state: str
    harness: str
    group: str
    order: int


@dataclass
class _Candidate:
    """A skill that is not native, on its way to a status."""

    found: Found
    origin: Origin
    state: str
    native_in: set[str] = field(default_factory=set)
    hidden_in: set[str] = field(default_factory=set)
    losers: list[_Candidate] = field(default_factory=list)

    @property
    def rank(self) -> tuple[object, ...]:
        """Smaller wins: state, then the source's place in the configuration, then the shorter path."""
        folder = self.found.folder
        return (_PRIORITY[self.state], self.origin.order, folder.count("/"), len(folder), self.found.id)


def decide(
    found: Iterable[Found],
    categorized: Mapping[str, Categorized],
    origins: Mapping[str, Origin],
    uncategorized: str = "review",
) -> list[Selected]:
    """One `Selected` for each found skill, in ID order.

    uncategorized: "review" keeps a skill without a category out of every lane, "index" takes it in all the same.
    """
    natives, candidates = _split(found, origins)
    _mark_native(natives, candidates)
    winners, duplicates = _fold(sorted(candidates, key=lambda candidate: candidate.rank))
    rows = [_native_row(item) for item in natives]
    rows += [_duplicate_row(loser, winner, reason) for loser, winner, reason in duplicates]
    rows += [_winner_row(winner, categorized, uncategorized) for winner in winners]
    return sorted(rows, key=lambda row: row.id)


def ties(item: Found, group: str) -> list[str]:
    """What a skill's fate hangs on: skills that share none of these texts, directly or through others, are decided apart.

    group: of its source, "" for none.
    """
    name = name_key(item.name)
    found = [f"path {path}" for path in (item.path, *item.aliases)]
    found += [f"name {name}", f"body {_body_key(item)}"]
    return [*found, f"group {group}\n{name}"] if group else found


def name_key(name: str) -> str:
    """The form in which names are compared: case and white space do not count."""
    return " ".join(name.casefold().split())


def _split(found: Iterable[Found], origins: Mapping[str, Origin]) -> tuple[list[_Candidate], list[_Candidate]]:
    natives: list[_Candidate] = []
    candidates: list[_Candidate] = []
    for item in found:
        origin = origins[item.source]
        if origin.state == "native" and not item.hidden:
            natives.append(_Candidate(item, origin, "native"))
            continue
        state = "hidden" if origin.state == "native" else origin.state
        candidate = _Candidate(item, origin, state)
        if state == "hidden" and origin.harness:
            candidate.hidden_in.add(origin.harness)
        candidates.append(candidate)
    return natives, candidates


def _mark_native(natives: Sequence[_Candidate], candidates: Sequence[_Candidate]) -> None:
    """A native skill suppresses, in its harness only, what has its name or its very body."""
    by_name: dict[str, set[str]] = defaultdict(set)
    by_body: dict[str, set[str]] = defaultdict(set)
    for native in natives:
        harness = native.origin.harness or EVERYWHERE
        by_name[name_key(native.found.name)].add(harness)
        by_body[_body_key(native.found)].add(harness)
    for candidate in candidates:
        candidate.native_in |= by_name.get(name_key(candidate.found.name), set())
        candidate.native_in |= by_body.get(_body_key(candidate.found), set())


def _body_key(item: Found) -> str:
    if item.body_chars < STUB_CHARS:
        return f"{item.body_digest}\n{' '.join(item.description.casefold().split())}\n{name_key(item.name)}"
    return item.body_digest


def _fold(ordered: Sequence[_Candidate]) -> tuple[list[_Candidate], list[tuple[_Candidate, _Candidate, str]]]:
    """Go through candidates from the strongest; each joins an earlier one that it repeats, or stands for itself."""
    winners: list[_Candidate] = []
    duplicates: list[tuple[_Candidate, _Candidate, str]] = []
    seen: dict[tuple[str, str], _Candidate] = {}
    by_name: dict[str, list[_Candidate]] = defaultdict(list)
    for candidate in ordered:
        keys = _keys(candidate)
        match = next(((seen[key], reason) for key, reason in keys if key in seen), None)
        name = name_key(candidate.found.name)
        if match is None:
            near = next((other for other in by_name[name] if alike(candidate.found, other.found) >= NEAR), None)
            match = (near, "nearly the same text under the same name") if near else None
        winner = match[0] if match else candidate
        for key, _reason in keys:
            seen.setdefault(key, winner)
        if match is None:
            winners.append(candidate)
            by_name[name].append(candidate)
            continue
        winner.losers.append(candidate)
        winner.hidden_in |= candidate.hidden_in
        winner.native_in |= candidate.native_in
        duplicates.append((candidate, winner, match[1]))
    return winners, duplicates


def _keys(candidate: _Candidate) -> list[tuple[tuple[str, str], str]]:
    item = candidate.found
    keys = [(("path", path), "the same file on disk") for path in (item.path, *item.aliases)]
    keys.append((("body", _body_key(item)), "the same text"))
    if candidate.origin.group:
        name = f"{candidate.origin.group}\n{name_key(item.name)}"
        keys.append((("group", name), f"the same name within group {candidate.origin.group}"))
    return keys


def packed(sketch: Sequence[int]) -> bytes:
    """The smallest hashes of a sketch, eight bytes each, most significant first: their order as bytes is that of the numbers."""
    kept = sketch[:SKETCH]
    return struct.pack(f">{len(kept)}Q", *kept)


def alike(one: Found, other: Found) -> float:
    """Estimated share of common shingles of two bodies, 0 to 1, from their sketches."""
    left, right = _hashes(one.sketch), _hashes(other.sketch)
    size, common = min(len(left), len(right)), left & right
    if len(common) < NEAR * size or not size:
        return len(common) / size if size else 0.0  # an upper bound, and below what matters
    return len(common.intersection(sorted(left | right)[:size])) / size


def _hashes(sketch: bytes) -> set[bytes]:
    return {sketch[start : start + 8] for start in range(0, len(sketch), 8)}


def _native_row(native: _Candidate) -> Selected:
    harness = native.origin.harness
    where = f"the {harness} harness shows it already" if harness else "it is declared native, so its harness shows it"
    return _row(native.found, status="suppressed", reason=f"native: {where}")


def _duplicate_row(loser: _Candidate, winner: _Candidate, reason: str) -> Selected:
    return _row(loser.found, status="duplicate", reason=f"{reason} as {winner.found.id}", winner=winner.found.id)


def _winner_row(winner: _Candidate, categorized: Mapping[str, Categorized], uncategorized: str) -> Selected:
    item = winner.found
    if EVERYWHERE in winner.native_in:
        return _row(item, status="suppressed", reason="a native skill without a harness has the same name or text")
    categories = _categories(winner, categorized)
    if not categories and uncategorized == "review":
        reason = "no approved category: add retrieval_categories, an override or a taxonomy keyword"
        return _row(item, status="review", reason=reason)
    record = Record(
        id=item.id,
        name=item.name,
        description=item.description,
        source=item.source,
        state=winner.state,
        categories=categories or ("uncategorized",),
        tags=item.tags,
        path=item.path,
        digest=item.digest,
        package_digest=item.package_digest,
        files=item.files,
        bytes=item.bytes,
        harness=winner.origin.harness,
        native_in=tuple(sorted(winner.native_in)),
        hidden_in=tuple(sorted(winner.hidden_in)),
        duplicates=tuple(sorted(loser.found.id for loser in winner.losers)),
        aliases=item.aliases,
        diagnostics=_diagnostics(item, categorized),
    )
    return _row(item, status="indexed", record=record)


def _categories(winner: _Candidate, categorized: Mapping[str, Categorized]) -> tuple[str, ...]:
    """The winner's own categories, else those of the first of its duplicates that has any."""
    for candidate in (winner, *winner.losers):
        row = categorized.get(candidate.found.id)
        if row is not None and row.categories:
            return row.categories
    return ()


def _diagnostics(item: Found, categorized: Mapping[str, Categorized]) -> tuple[str, ...]:
    row = categorized.get(item.id)
    return (*item.diagnostics, *row.diagnostics) if row else item.diagnostics


def _row(item: Found, *, status: str, reason: str = "", winner: str = "", record: Record | None = None) -> Selected:
    return Selected(
        id=item.id,
        status=status,
        reason=reason,
        winner=winner,
        path=item.path,
        folder=item.folder,
        digest=item.digest,
        key=item.key,
        reading=item.reading,
        record=record,
    )
