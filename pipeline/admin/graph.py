"""The task graph with the state each task is really in: doit tells it for all but scans, which only the sources can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.admin import account
from pipeline.engine.picture import Node, states
from pipeline.engine.shadow import ShadowBuild, shadow

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.engine.build import Build


def nodes(build: Build) -> list[Node]:
    """All tasks of a build in the order of dodo.py. Runs nothing, but looks at the sources. Raises LockedError while a build runs.

    state: current (nothing to do), stale (would run), waiting (runs if what it needs turns out different).
    """
    account.wait_for_quiet(build)  # asking doit rewrites its cache, which a build at the same time would lose
    found = [
        node for node in states(build) if node.name != "verify"
    ]  # which is current at no time, and part of no build
    with shadow(build, clean=False) as trial:
        walked = [("scan", source.name) for source in build.sources]
        walked += [("document", source.name) for source in build.references]
        scanned = {f"{step}:{source}": _scans_alike(build, trial, step, source) for step, source in walked}
    settled: dict[str, str] = {}
    result = []
    for node in found:
        state = node.state
        if node.name in scanned:
            state = "current" if scanned[node.name] else "stale"
        elif state == "current" and any(settled.get(need, "current") != "current" for need in node.needs):
            state = "waiting"
        settled[node.name] = state
        result.append(node._replace(state=state))
    return result


def _scans_alike(build: Build, trial: ShadowBuild, step: str, source: str) -> bool:
    """Whether a walk now would leave the manifests of a source as they are."""
    from pipeline.tasks import references, scan

    (scan if step == "scan" else references.document).run(trial, source)
    return all(
        _bytes(real) == _bytes(seen)
        for real, seen in (
            (build.paths.manifest(step, source), trial.paths.manifest(step, source)),
            (build.paths.problems(source), trial.paths.problems(source)),
        )
    )


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
