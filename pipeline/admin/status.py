"""The state of the index: counts that add up, what is missing, and what waits for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.engine import generation, manifest
from pipeline.model import Problem, Selected
from serve.errors import ExitCode

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from serve.contract import SnapshotManifest

_EMPTY = dict.fromkeys(("found", "indexed", "duplicate", "suppressed", "review", "problem"), 0)


def collect(build: Build, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """Everything `retrieval status` shows. chosen: statuses whose skills are listed one by one."""
    root = build.paths.snapshots
    pointer = generation.current(root)
    held = generation.read_manifest(root / pointer.generation) if pointer else None
    counts = held.counts if held else {}
    sources = {source.name: dict(counts.get(source.name, _EMPTY)) for source in build.sources}
    warnings = [warning.as_dict() for warning in build.settings.warnings]
    warnings += [_not_built(source.name) for source in build.sources if held and source.name not in counts]
    warnings += [_left(name) for name in counts if name not in sources]
    pending = any(row["review"] or row["problem"] for row in sources.values()) or bool(warnings)
    code = ExitCode.FAILED if held is None else ExitCode.PROBLEMS if pending else ExitCode.OK
    return {
        "index": {
            "generation": pointer.generation if pointer and held else "",
            "published_at": pointer.published_at if pointer and held else None,
            "skills": held.skills if held else 0,
            "reason": "" if held else _no_index(build),
            "intact": _intact(build) if held else False,
        },
        "sources": sources,
        "lanes": _lanes(build, held),
        "store": _store(build),
        "watcher": "not part of this version: run `retrieval build` after changes",
        "last_run": _last_run(build),
        "warnings": warnings,
        "lists": {name: _list(build, name) for name in chosen},
        "data_dir": str(build.paths.data),
        "config": str(build.settings.config_file or ""),
        "versions": versions(),
        "exit_code": int(code),
    }


def versions() -> dict[str, str]:
    """The versions of this program and of what it builds on."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("retrieval", "doit", "chromadb", "onnxruntime", "tokenizers", "fastembed"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _no_index(build: Build) -> str:
    if generation.current(build.paths.snapshots) is None:
        return "there is no index yet; run `retrieval build`"
    return "the published index cannot be read; run `retrieval build`"


def _intact(build: Build) -> bool:
    from pipeline.tasks import publish

    return publish.intact(build)


def _not_built(name: str) -> dict[str, str]:
    return {"warning": f"source {name} is configured but not in the index", "where": name, "next": "run `retrieval build`"}


def _left(name: str) -> dict[str, str]:
    return {"warning": f"source {name} is in the index but no longer configured", "where": name, "next": "run `retrieval build`"}


def _lanes(build: Build, held: SnapshotManifest | None) -> dict[str, str]:
    if held is None:
        return {"semantic": "none: no index", "lexical": "none: no index"}
    embedder = held.embedder
    lanes = {"semantic": f"{embedder.model} ({embedder.kind}, {embedder.dimension} dimensions)", "lexical": f"BM25F over {held.skills} skills"}
    wanted = build.identity
    if (wanted.kind, wanted.model, wanted.digest) != (embedder.kind, embedder.model, embedder.digest):
        lanes["semantic"] += f"; the configuration now asks for {wanted.model} ({wanted.kind}): run `retrieval build`"
    return lanes


def _store(build: Build) -> str:
    from pipeline.tasks import upsert

    return upsert.describe(build)


def _last_run(build: Build) -> object:
    import json

    try:
        return json.loads(build.paths.last_run.read_bytes())
    except (OSError, ValueError):
        return None


def _list(build: Build, status: str) -> list[dict[str, str]]:
    rows = []
    for source in build.sources:
        if status == "problem":
            path = build.paths.problems(source.name)
            rows += [
                {"id": f"{row.source}: {row.where}", "reason": f"{row.kind}: {row.what}", "next": row.next}
                for row in manifest.previous(path, Problem)
            ]
            continue
        selected = manifest.previous(build.paths.manifest("select", source.name), Selected)
        rows += [{"id": row.id, "reason": row.reason, "path": row.path} for row in selected if row.status == status]
    return rows
