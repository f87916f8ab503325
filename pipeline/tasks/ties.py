"""What `select` remembers of its last run: for each skill, what it was decided from and what its fate hangs on.

With it an edit is decided together with the skills it is tied to, and not with the whole library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from pipeline.engine import files
from pipeline.model import Found
from pipeline.steps import select

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pipeline.engine.build import Build

WIDTH = 8  # bytes of a digest here: a collision only means that one more skill is looked at

_found = msgspec.json.Decoder(Found)


class _OnlyId(msgspec.Struct):
    id: str


_only_id = msgspec.json.Decoder(_OnlyId)


class Ties(msgspec.Struct, kw_only=True):
    """Of one source. token: of settings and code. scan, categorize, selected: digests of the manifests read and written.

    ids: in manifest order. seen: WIDTH bytes for each, of its lines in the manifests that were read. ties: for each,
    digests of its ties one after the other.
    """

    token: str
    scan: str
    categorize: str
    selected: str = ""
    ids: list[str]
    seen: list[bytes]
    ties: list[bytes]


def path_of(build: Build, source: str) -> Path:
    """Where the ties of a source are kept."""
    return build.paths.build / "ties" / f"{source}.msgpack"


def load(build: Build, source: str, token: str) -> Ties | None:
    """What was remembered, if it goes with the manifest that was written then and with the present settings."""
    try:
        held = msgspec.msgpack.decode(path_of(build, source).read_bytes(), type=Ties)
        written = build.digests.of(build.paths.manifest("select", source))
    except (OSError, msgspec.MsgspecError):
        return None
    return held if (held.token, held.selected) == (token, written) else None


def is_current(build: Build, source: str, held: Ties) -> bool:
    """Whether the manifests that `select` reads are those it read."""
    return (held.scan, held.categorize) == _inputs(build, source)


def make(build: Build, source: str, token: str, before: Ties | None) -> Ties | None:
    """The ties of a source as its manifests are now; None when they do not go together, which only whole reading can tell."""
    scanned, categorized = lines(build, "scan", source), lines(build, "categorize", source)
    if len(scanned) != len(categorized):
        return None
    group = build.source(source).group
    known = dict(zip(before.ids, zip(before.seen, before.ties, strict=True), strict=True)) if before else {}
    ids, seen, ties = [], [], []
    for line, other in zip(scanned, categorized, strict=True):
        skill = _only_id.decode(line).id
        if _only_id.decode(other).id != skill:
            return None
        mark = blake3(line + other).digest(length=WIDTH)
        was = known.get(skill)
        ids.append(skill)
        seen.append(mark)
        ties.append(was[1] if was is not None and was[0] == mark else _ties(line, group))
    scan, categorize = _inputs(build, source)
    return Ties(token=token, scan=scan, categorize=categorize, ids=ids, seen=seen, ties=ties)


def store(build: Build, source: str, held: Ties) -> None:
    """Keep the ties of a source, after its select manifest was written."""
    held.selected = build.digests.of(build.paths.manifest("select", source))
    files.write(path_of(build, source), msgspec.msgpack.encode(held))


def lines(build: Build, step: str, source: str) -> list[bytes]:
    """The lines of a manifest."""
    return build.paths.manifest(step, source).read_bytes().splitlines()


def changed(before: Ties, after: Ties) -> tuple[set[str], set[bytes]]:
    """The IDs of skills that came, went or were decided from something else, and their ties of both times."""
    old = dict(zip(before.ids, zip(before.seen, before.ties, strict=True), strict=True))
    new = dict(zip(after.ids, zip(after.seen, after.ties, strict=True), strict=True))
    skills = {key for key in old.keys() | new.keys() if old.get(key, _NONE)[0] != new.get(key, _NONE)[0]}
    return skills, {side[key][1] for side in (old, new) for key in skills & side.keys()}


def reached(all_ties: Mapping[str, Ties], seeds: Iterable[bytes]) -> dict[str, list[int]]:
    """By source the places of the skills that hang together with any of the seeds, however many others lie between."""
    import numpy as np  # here, so that a build with nothing to do need not load it

    owners = [(name, place) for name, held in all_ties.items() for place in range(len(held.ids))]
    chunks = [chunk for held in all_ties.values() for chunk in held.ties]
    flat = np.frombuffer(b"".join(chunks), dtype="<u8")
    item = np.repeat(np.arange(len(chunks)), [len(chunk) // WIDTH for chunk in chunks])
    wanted = np.unique(np.frombuffer(b"".join(seeds), dtype="<u8"))
    while True:
        rows = np.unique(item[np.isin(flat, wanted)])
        more = np.unique(flat[np.isin(item, rows)])
        if len(np.setdiff1d(more, wanted)) == 0:
            break
        wanted = np.union1d(wanted, more)
    found: dict[str, list[int]] = {}
    for row in rows.tolist():
        name, place = owners[row]
        found.setdefault(name, []).append(place)
    return found


_NONE = (b"", b"")


def _ties(line: bytes, group: str) -> bytes:
    texts = select.ties(_found.decode(line), group)
    return b"".join([blake3(text.encode("utf-8", "surrogatepass")).digest(length=WIDTH) for text in texts])


def _inputs(build: Build, source: str) -> tuple[str, str]:
    scan, categorize = (build.digests.of(build.paths.manifest(step, source)) for step in ("scan", "categorize"))
    return scan, categorize
