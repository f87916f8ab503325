"""Publish: everything a query needs, as a new generation of the snapshot, made current by one rename."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engine import code, faults, files, generation, manifest
from pipeline.engine.generation import GenerationWriter
from pipeline.model import Problem, Selected
from serve import contract

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.engine.build import Build


def settings(build: Build) -> list[str]:
    """Digests of the code that lays a snapshot out, and what of the configuration stands in it."""
    layout = code.digest(("pipeline.tasks.assembly", "pipeline.engine.generation", "serve.lanes.postings"))
    said = [layout, str(contract.CONTRACT_VERSION), repr(build.identity), repr(build.store_info)]
    if build.references:
        from pipeline.tasks.references import layout as of_references

        said += of_references.settings(build)
    return said


def run(build: Build) -> None:
    """Publish what the manifests say, unless exactly that is current already."""
    from pipeline.tasks import assembly
    from pipeline.tasks.references import leftovers

    leftovers.forget(build)
    with build.report.timing("publish") as count:
        root = build.paths.snapshots
        old = assembly.old_generation(root)
        writer = GenerationWriter(root, old.folder if old else None, old.manifest.files if old else {})
        try:
            name = assembly.write(build, writer, old, counts(build))
        finally:
            writer.abandon()
        now = generation.current(root)
        build.report.generation = name
        if now is None or now.generation != name:
            faults.reach("publish:before-pointer")
            generation.point(root, name)
            build.report.published = True
            count.written += 1
        count.executed += 1
        count.removed += generation.collect(root, name)
        files.write(_stamp(build), generation.fingerprint(root).encode())


def intact(build: Build) -> bool:
    """Whether nobody has touched the published snapshot since this build published it."""
    try:
        stamp = _stamp(build).read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return bool(stamp) and stamp == generation.fingerprint(build.paths.snapshots)


def counts(build: Build) -> dict[str, dict[str, int]]:
    """Per source how many skills were found and what became of them; found is the sum of the rest."""
    result = {}
    for source in build.sources:
        selected = build.rows("select", source.name, Selected)
        problems = len(manifest.load(build.paths.problems(source.name), Problem))
        row = dict.fromkeys(("indexed", "duplicate", "suppressed", "review"), 0)
        for item in selected:
            row[item.status] += 1
        result[source.name] = {"found": len(selected) + problems, **row, "problem": problems}
    return result


def _stamp(build: Build) -> Path:
    return build.paths.build / "publish.stamp"
