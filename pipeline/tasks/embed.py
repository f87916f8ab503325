"""Vectors of a source's indexed skills: each short text is embedded once, whoever has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engine import files, manifest
from pipeline.model import Keyed, Selected
from pipeline.tasks import texts
from serve.errors import EmbedderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from pipeline.engine.build import Build


def identity_key(build: Build) -> str:
    """What of the embedder decides a vector, as one digest. The dimension follows from the rest."""
    identity = build.identity
    return files.key(
        identity.kind,
        identity.model,
        identity.digest,
        identity.passage_prefix,
        identity.recipe,
        build.settings.embedder.url,
    )


def settings(build: Build, _source: str) -> list[str]:
    """The embedder's identity."""
    return [identity_key(build)]


def run(build: Build, source: str) -> None:
    """Embed the short text of each indexed skill of a source."""
    path = build.paths.manifest("embed", source)
    described = build.rows("descriptor", source, Keyed)
    base = identity_key(build)
    rows = []
    for row in described:
        key = files.key(base, row.short)
        rows.append(Keyed(id=row.id, key=key, digest=key))
    before = {row.id: row.digest for row in manifest.previous(path, Keyed)}
    with build.report.timing("embed") as count:
        fresh = {row.key: item for row, item in zip(rows, described, strict=True) if before.get(row.id) != row.key}
        held = build.memo.has("embed", list(fresh))
        todo = {key: row for key, row in fresh.items() if key not in held}
        if not build.dry:
            embed(build, source, todo)
        count.executed += len(todo)
        count.reused += len(rows) - len(todo)
        manifest.store(path, rows)
    build.record("embed", before, {row.id: row.digest for row in rows}, {row.id for row in rows if row.key in todo})


def embed(build: Build, source: str, todo: dict[str, Keyed]) -> None:
    """Embed the short texts of descriptor rows and keep the vectors under the given keys, batch by batch."""
    if not todo:
        return
    selected = {row.id: row for row in build.rows("select", source, Selected)}
    keys = list(todo)
    shorts = [item.short for item in texts.descriptors(build, selected, list(todo.values()))]
    build.progress.begin("embed", len(keys))
    for indices, vectors in build.embedder.batches(shorts):
        pairs = [(keys[index], vectors[position].tobytes()) for position, index in enumerate(indices)]
        build.memo.put("embed", pairs)
        build.progress.advance("embed", len(pairs))


def vectors(build: Build, rows: Sequence[tuple[str, Keyed]]) -> npt.NDArray[np.float32]:
    """The vectors of (source, embed row) pairs as float32 [rows, dimension]; what the memo lost is embedded again."""
    keys = [row.key for _source, row in rows]
    held = build.memo.get("embed", keys)
    lost: dict[str, dict[str, Keyed]] = {}
    for source, row in rows:
        if row.key not in held:
            lost.setdefault(source, {})[row.id] = row
    for source, missing in lost.items():
        described = {row.id: row for row in build.rows("descriptor", source, Keyed)}
        embed(build, source, {row.key: described[row.id] for row in missing.values()})
        build.report.step("embed").executed += len({row.key for row in missing.values()})
    if lost:
        held = build.memo.get("embed", keys)
    return matrix(build, keys, held)


def matrix(build: Build, keys: Sequence[str], held: Mapping[str, bytes]) -> npt.NDArray[np.float32]:
    """Kept vectors in the order of their keys, as float32 [rows, dimension]. Raises EmbedderError for different lengths."""
    import numpy as np

    sizes = {len(value) for value in held.values()}
    if len(sizes) > 1:
        raise EmbedderError(
            "the embedder gave vectors of different lengths for different texts",
            where=build.settings.embedder.url or build.identity.model,
            next_step="make sure one model answers there, then remove the memo with `retrieval clean --memo`",
        )
    size = sizes.pop() // 4 if sizes else build.identity.dimension
    return np.frombuffer(b"".join(held[key] for key in keys), dtype="<f4").reshape(len(keys), size)
