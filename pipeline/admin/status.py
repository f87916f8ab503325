"""The state of the index: counts that add up, what is missing, and what waits for a person."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.admin import account, references
from pipeline.engine import generation, manifest
from pipeline.model import Problem, Selected
from pipeline.tasks import publish, upsert
from pipeline.watch import tale
from serve.errors import ExitCode

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from serve.contract import Pointer, SnapshotManifest

_LISTED = ("duplicate", "suppressed", "review", "problem")
_EMPTY = dict.fromkeys(("found", "indexed", "duplicate", "suppressed", "review", "problem"), 0)


def collect(build: Build, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """Everything `retrieval status` shows. chosen: statuses whose skills are listed one by one."""
    root = build.paths.snapshots
    pointer = generation.current(root)
    held = generation.read_manifest(root / pointer.generation) if pointer else None
    counts = held.counts if held else {}
    sources = {source.name: _EMPTY | counts.get(source.name, {}) for source in build.sources}
    lists = {name: _list(build, name) for name in _LISTED}
    index = _index(build, pointer if held else None, held)
    running = account.holder(build)
    told = tale.tell(build.paths.data)
    last = account.last_run(build)
    warnings = account.configured(build) + told.warnings
    if not running:
        warnings += _stale(build, counts, lists, intact=index["intact"]) if held else []
        warnings += [_warning(what, str(build.paths.data)) for what in references.stale(build, held)] if held else []
        warnings += [_failed(last["error"])] if isinstance(last.get("error"), dict) else []
    referenced = references.counts(build, held)
    lists["problem"] += [_problem_row(row) for row in references.problems(build)]
    rows = [*sources.values(), *referenced.values()]
    pending = any(row.get("review") or row["problem"] for row in rows) or bool(warnings)
    return {
        "index": index,
        "sources": sources,
        "totals": account.counted(sources),
        "references": referenced,
        "lanes": _lanes(build, held),
        "store": upsert.describe(build),
        "running": running,
        "watcher": told.summary,
        "watching": told.state,
        "last_run": last or None,
        "warnings": warnings,
        "lists": {name: lists[name] for name in chosen},
        "data_dir": str(build.paths.data),
        "config": str(build.settings.config_file or ""),
        "versions": versions(),
        "exit_code": int(ExitCode.FAILED if held is None else ExitCode.PROBLEMS if pending else ExitCode.OK),
    }


def _index(build: Build, pointer: Pointer | None, held: SnapshotManifest | None) -> dict[str, Any]:
    """The published index, or the reason why there is none."""
    return {
        "generation": pointer.generation if pointer else "",
        "published_at": pointer.published_at if pointer else None,
        "age_seconds": round(max(0.0, time.time() - pointer.published_at), 1) if pointer else None,
        "skills": held.skills if held else 0,
        "reason": "" if held else _no_index(build),
        "intact": publish.intact(build) if held else False,
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


def _not_built(name: str) -> dict[str, str]:
    return _warning(f"source {name} is configured but not in the index", name)


def _left(name: str) -> dict[str, str]:
    return _warning(f"source {name} is in the index but no longer configured", name)


def _stale(
    build: Build, counts: dict[str, dict[str, int]], lists: dict[str, list[dict[str, str]]], *, intact: bool
) -> list[dict[str, str]]:
    """In what the published index is not what the configuration and the last build would have it be."""
    where = str(build.paths.data)
    names = [source.name for source in build.sources]
    warnings = [_not_built(name) for name in names if name not in counts]
    warnings += [_left(name) for name in counts if name not in names]
    warnings += [] if intact else [_warning("the published index is not as the last build left it", where)]
    for status, rows in lists.items():
        counted = sum(counts[name][status] for name in names if name in counts)
        if counted != len(rows):  # a build that was cut short leaves lists that are ahead of what is published
            what = f"a build was cut short: it lists {len(rows)} as {status}, the index counts {counted}"
            warnings.append(_warning(what, where))
    return warnings


def _failed(error: dict[str, Any]) -> dict[str, str]:
    what, where, remedy = (str(error.get(key, "")) for key in ("error", "where", "next"))
    return {"warning": f"the last build failed: {what}", "where": where, "next": remedy or "run `retrieval build`"}


def _warning(what: str, where: str) -> dict[str, str]:
    return {"warning": what, "where": where, "next": "run `retrieval build`"}


def _lanes(build: Build, held: SnapshotManifest | None) -> dict[str, str]:
    if held is None:
        return {"semantic": "none: no index", "lexical": "none: no index"}
    embedder = held.embedder
    lanes = {
        "semantic": f"{embedder.model} ({embedder.kind}, {embedder.dimension} dimensions)",
        "lexical": f"BM25F over {held.skills} skills",
    }
    wanted = build.identity
    if (wanted.kind, wanted.model, wanted.digest) != (embedder.kind, embedder.model, embedder.digest):
        lanes["semantic"] += f"; the configuration now asks for {wanted.model} ({wanted.kind}): run `retrieval build`"
    return lanes


def _list(build: Build, status: str) -> list[dict[str, str]]:
    """The skills of one status as the last build left them. Keys: source, id, reason, winner, path, next."""
    rows = []
    for source in build.sources:
        if status == "problem":
            problems = manifest.previous(build.paths.problems(source.name), Problem)
            rows += [_problem_row(row) for row in problems]
            continue
        selected = manifest.previous(build.paths.manifest("select", source.name), Selected)
        rows += [_row(source.name, row) for row in selected if row.status == status]
    return rows


def _row(source: str, row: Selected) -> dict[str, str]:
    return {"source": source, "id": row.id, "reason": row.reason, "winner": row.winner, "path": row.path, "next": ""}


def _problem_row(row: Problem) -> dict[str, str]:
    reason = f"{row.kind}: {row.what}"
    shown = {"id": f"{row.source}: {row.where}", "reason": reason, "winner": "", "path": row.where, "next": row.next}
    return {"source": row.source, **shown}
