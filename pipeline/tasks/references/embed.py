"""Vectors of a source's sections: each text is embedded once, whichever document has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engine import files, manifest
from pipeline.model import Keyed
from pipeline.tasks.embed import identity_key, matrix, settings
from pipeline.tasks.references import measure, texts
from pipeline.tasks.references.rows import SectionRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from pipeline.engine.build import Build

__all__ = ["run", "settings", "vectors"]

_AT_ONCE = 2_048  # rows whose texts are in memory together


def run(build: Build, source: str) -> None:
    """Embed each section of a source."""
    path = build.paths.manifest("embed", source)
    sections = build.rows("section", source, SectionRow)
    base = identity_key(build)
    rows = [Keyed(id=row.id, key=key, digest=key) for row in sections for key in [files.key(base, row.short)]]
    before = {row.id: row.digest for row in manifest.previous(path, Keyed)}
    with build.report.timing("embed") as count:
        fresh = {row.key: section for row, section in zip(rows, sections, strict=True) if before.get(row.id) != row.key}
        held = build.memo.has("embed", list(fresh))
        todo = {key: section for key, section in fresh.items() if key not in held}
        if not build.dry:
            _embed(build, todo)
        count.executed += len(todo)
        count.reused += len(rows) - len(todo)
        manifest.store(path, rows)
    build.record("embed", before, {row.id: row.digest for row in rows}, {row.id for row in rows if row.key in todo})


def _embed(build: Build, todo: Mapping[str, SectionRow]) -> None:
    """Embed the texts of rows and keep the vectors under the given keys."""
    from pipeline.steps import passage

    keys = list(todo)
    window = measure.window(build.identity.kind)
    build.progress.begin("embed", len(keys))
    for start in range(0, len(keys), _AT_ONCE):
        chunk = keys[start : start + _AT_ONCE]
        said = texts.said(build, [todo[key] for key in chunk])
        _keep(build, chunk, [passage.windows(*row[1:], window) for row in said])


def _keep(build: Build, keys: Sequence[str], groups: Sequence[Sequence[str]]) -> None:
    """Embed groups of texts; a group's mean is kept as soon as the last of its vectors is there."""
    owners = [place for place, group in enumerate(groups) for _text in group]
    pending: list[dict[int, npt.NDArray[np.float32]]] = [{} for _group in groups]
    for indices, made in build.embedder.batches([text for group in groups for text in group]):
        whole = []
        for index, vector in zip(indices, made, strict=True):
            place = owners[index]
            pending[place][index] = vector
            if len(pending[place]) == len(groups[place]):
                found = pending[place]
                whole.append((keys[place], _mean([found[at] for at in sorted(found)])))
                pending[place] = {}
        if whole:
            build.memo.put("embed", whole)
            build.progress.advance("embed", len(whole))


def _mean(vectors: Sequence[npt.NDArray[np.float32]]) -> bytes:
    """The mean of vectors, of length 1 again; those that cancel each other out leave the first."""
    import numpy as np

    if len(vectors) == 1:
        return vectors[0].astype("<f4", copy=False).tobytes()
    mean = np.mean(vectors, axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean))
    return (mean / length if length > 1e-6 else vectors[0]).astype("<f4").tobytes()


def vectors(build: Build, rows: Sequence[SectionRow], embedded: Sequence[Keyed]) -> npt.NDArray[np.float32]:
    """The vectors of rows as float32 [rows, dimension]; what the memo has lost is embedded again."""
    keys = [row.key for row in embedded]
    held = build.memo.get("embed", keys)
    lost = {key: row for key, row in zip(keys, rows, strict=True) if key not in held}
    if lost:
        _embed(build, lost)
        build.report.step("embed").executed += len(lost)
        held = build.memo.get("embed", keys)
    return matrix(build, keys, held)
