"""One skill looked at closely: what is known of it, and why it stands where it does."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pipeline.engine import manifest
from pipeline.model import Categorized, Found, Keyed, Selected
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from pipeline.engine.build import Build

STEPS = ("scan", "categorize", "select", "descriptor", "card", "terms", "embed", "upsert")


class Known(NamedTuple):
    """The manifest rows of one skill."""

    source: str
    found: Found
    categorized: Categorized | None
    selected: Selected | None


def find(build: Build, skill_id: str) -> Known:
    """The rows of a skill. Raises OperatorError with near IDs when no source has it."""
    source = skill_id.partition(":")[0]
    names = [item.name for item in build.sources]
    if source in names:
        found = _row(build, "scan", source, Found, skill_id)
        if found is not None:
            categorized = _row(build, "categorize", source, Categorized, skill_id)
            return Known(source, found, categorized, _row(build, "select", source, Selected, skill_id))
    raise OperatorError(
        f"no skill has the ID `{skill_id}`", next_step=_suggestion(build, skill_id), code=ExitCode.USAGE
    )


def _row(build: Build, step: str, source: str, row_type: type[Any], skill_id: str) -> Any:
    rows = manifest.previous(build.paths.manifest(step, source), row_type)
    return next((row for row in rows if row.id == skill_id), None)


def _suggestion(build: Build, skill_id: str) -> str:
    ids = [row.id for item in build.sources for row in manifest.previous(build.paths.manifest("scan", item.name), Found)]
    if not ids:
        return "run `retrieval build` first"
    tail = skill_id.rpartition(":")[2].rpartition("/")[2].casefold()
    same = [item for item in ids if item.casefold().endswith(tail)] if tail else []
    near = same[:3] or difflib.get_close_matches(skill_id, ids, n=3, cutoff=0.6)
    return f"did you mean {', '.join(near)}?" if near else "look for it with `retrieval search`"


def show(build: Build, skill_id: str) -> dict[str, Any]:
    """What the index knows of a skill, whatever became of it."""
    known = find(build, skill_id)
    found, selected = known.found, known.selected
    record = selected.record if selected else None
    origin = next(item for item in build.sources if item.name == known.source)
    shown: dict[str, Any] = {
        "id": found.id,
        "name": found.name,
        "description": found.description,
        "status": selected.status if selected else "not built",
        "reason": selected.reason if selected else "run `retrieval build`",
        "source": known.source,
        "state": record.state if record else origin.state,
        "harness": origin.harness,
        "categories": list(record.categories if record else known.categorized.categories if known.categorized else ()),
        "tags": list(found.tags),
        "path": found.path,
        "aliases": list(found.aliases),
        "digest": found.digest,
        "package_digest": found.package_digest,
        "files": found.files,
        "bytes": found.bytes,
        "diagnostics": list(record.diagnostics if record else found.diagnostics),
        "duplicates": list(record.duplicates) if record else [],
        "winner": selected.winner if selected else "",
        "native_in": list(record.native_in) if record else [],
        "hidden_in": list(record.hidden_in) if record else [],
    }
    return shown


def why(build: Build, skill_id: str) -> dict[str, Any]:
    """Why a skill stands where it does: its status, the rules that gave its categories, and what last changed it."""
    shown = show(build, skill_id)
    known = find(build, skill_id)
    evidence = [msgspec.to_builtins(item) for item in known.categorized.evidence] if known.categorized else []
    changes = build.lineage.of(skill_id)
    latest = max((change.at for change in changes), default=0.0)
    run = next((change.run for change in changes if change.at == latest), "")
    in_run = {change.step: change for change in changes if change.run == run}
    steps = []
    for step in STEPS:
        change = in_run.get(step)
        if change is not None:
            steps.append(
                {"step": step, "computed": change.ran, "before": change.before, "after": change.after, "changed": change.before != change.after}
            )
    return {
        **{key: shown[key] for key in ("id", "name", "status", "reason", "state", "categories", "winner", "duplicates", "native_in", "diagnostics", "path")},
        "evidence": evidence,
        "last_run": run,
        "last_change_at": latest or None,
        "input": {"digest": known.found.digest, "package_digest": known.found.package_digest},
        "steps": steps,
        "cut_off": _cut_off(steps, shown["status"]),
        "keys": _keys(build, known.source, skill_id),
    }


def _cut_off(steps: list[dict[str, Any]], status: str) -> str:
    """Where the last change stopped: the first step that came out as before, or that was not reached."""
    for row in steps:
        if row["computed"] and not row["changed"]:
            return f"{row['step']} ran and its result was the same, so nothing after it had to run for this skill"
    if status != "indexed" and steps:
        return "select: the skill is not in the index, so no later step runs for it"
    reached = {row["step"] for row in steps}
    missing = [step for step in STEPS if step not in reached]
    if steps and missing:
        return f"not reached, their inputs were the same: {', '.join(missing)}"
    return ""


def _keys(build: Build, source: str, skill_id: str) -> dict[str, str]:
    keys = {}
    for step in ("descriptor", "terms", "embed"):
        row = _row(build, step, source, Keyed, skill_id)
        if row is not None:
            keys[step] = row.key
    return keys
