"""One skill looked at closely: what is known of it, and why it stands where it does."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pipeline.admin import references
from pipeline.engine import manifest
from pipeline.model import Categorized, Found, Keyed, Problem, Selected
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from pipeline.settings import Source

STEPS = ("scan", "categorize", "select", "descriptor", "card", "terms", "embed", "upsert")
_SHOWN_BY_WHY = (
    "id",
    "name",
    "status",
    "reason",
    "state",
    "categories",
    "winner",
    "duplicates",
    "native_in",
    "diagnostics",
    "path",
)


class Known(NamedTuple):
    """The manifest rows of one skill."""

    source: Source
    found: Found
    categorized: Categorized | None
    selected: Selected | None


def find(build: Build, skill_id: str) -> Known | Problem:
    """The rows of a skill, or the problem that stands in its place.

    Raises OperatorError with near IDs when no source has it.
    """
    name, _, folder = skill_id.partition(":")
    source = next((item for item in build.sources if item.name == name), None)
    if source is not None:
        found = _row(build, "scan", name, Found, skill_id)
        if found is not None:
            categorized = _row(build, "categorize", name, Categorized, skill_id)
            return Known(source, found, categorized, _row(build, "select", name, Selected, skill_id))
        problem = _problem(build, source, folder)
        if problem is not None:
            return problem
    raise OperatorError(
        f"no skill has the ID `{skill_id}`", next_step=_suggestion(build, skill_id), code=ExitCode.USAGE
    )


def _row(build: Build, step: str, source: str, row_type: type[Any], skill_id: str) -> Any:
    rows = manifest.previous(build.paths.manifest(step, source), row_type)
    return next((row for row in rows if row.id == skill_id), None)


def _problem(build: Build, source: Source, folder: str) -> Problem | None:
    """What could not be indexed at that folder or directly in it."""
    if not folder:
        return None
    place = os.path.normpath(os.path.join(source.path, folder))
    rows = manifest.previous(build.paths.problems(source.name), Problem)
    return next((row for row in rows if place in {row.where, os.path.dirname(row.where)}), None)


def _suggestion(build: Build, skill_id: str) -> str:
    ids = [
        row.id for item in build.sources for row in manifest.previous(build.paths.manifest("scan", item.name), Found)
    ]
    if not ids:
        return "run `retrieval build` first"
    tail = skill_id.rpartition(":")[2].rpartition("/")[2].casefold()
    same = [item for item in ids if item.casefold().endswith(tail)] if tail else []
    same += [item for item in ids if tail in item.casefold() and item not in same] if len(tail) > 2 else []
    near = same[:3] or difflib.get_close_matches(skill_id, ids, n=3, cutoff=0.75)
    return f"did you mean {', '.join(near)}?" if near else "look for it with `retrieval search`"


def show(build: Build, skill_id: str) -> dict[str, Any]:
    """What the index knows of a skill, whatever became of it, or of a section of the references."""
    if references.is_of(build, skill_id):
        return references.show(build, skill_id)
    known = find(build, skill_id)
    return _of_problem(skill_id, known) if isinstance(known, Problem) else _of_skill(known)


def _of_skill(known: Known) -> dict[str, Any]:
    found, selected = known.found, known.selected
    record = selected.record if selected else None
    categories = record.categories if record else known.categorized.categories if known.categorized else ()
    diagnostics = [*(record.diagnostics if record else found.diagnostics)]
    if known.categorized:
        diagnostics += [item for item in known.categorized.diagnostics if item not in diagnostics]
    return {
        "id": found.id,
        "name": found.name,
        "description": found.description,
        "status": selected.status if selected else "not built",
        "reason": selected.reason if selected else "run `retrieval build`",
        "next": "",
        "source": known.source.name,
        "state": record.state if record else known.source.state,
        "harness": known.source.harness,
        "categories": list(categories),
        "tags": list(found.tags),
        "path": found.path,
        "aliases": list(found.aliases),
        "digest": found.digest,
        "package_digest": found.package_digest,
        "files": found.files,
        "bytes": found.bytes,
        "diagnostics": diagnostics,
        "duplicates": list(record.duplicates) if record else [],
        "winner": selected.winner if selected else "",
        "native_in": list(record.native_in) if record else [],
        "hidden_in": list(record.hidden_in) if record else [],
    }


def _of_problem(skill_id: str, problem: Problem) -> dict[str, Any]:
    """The same fields for what could not be indexed: all that is known is where and why."""
    texts = dict.fromkeys(("name", "description", "state", "harness", "digest", "package_digest", "winner"), "")
    lists = ("categories", "tags", "aliases", "diagnostics", "duplicates", "native_in", "hidden_in")
    return {
        "id": skill_id,
        **texts,
        **{key: [] for key in lists},
        "status": "problem",
        "reason": f"{problem.kind}: {problem.what}",
        "next": problem.next,
        "source": problem.source,
        "path": problem.where,
        "files": 0,
        "bytes": 0,
    }


def why(build: Build, skill_id: str) -> dict[str, Any]:
    """Why a skill stands where it does: its status, the rules that gave its categories, and what last changed it."""
    if references.is_of(build, skill_id):
        return references.why(build, skill_id)
    known = find(build, skill_id)
    if isinstance(known, Problem):
        return _explained(_of_problem(skill_id, known), [])
    shown = _of_skill(known)
    changes = build.lineage.of(skill_id)
    latest = max((change.at for change in changes), default=0.0)
    run = next((change.run for change in changes if change.at == latest), "")
    in_run = {change.step: change for change in changes if change.run == run}
    steps: list[dict[str, Any]] = [
        {
            "step": step,
            "computed": in_run[step].ran,
            "before": in_run[step].before,
            "after": in_run[step].after,
            "changed": in_run[step].before != in_run[step].after,
        }
        for step in STEPS
        if step in in_run
    ]
    evidence = [msgspec.to_builtins(item) for item in known.categorized.evidence] if known.categorized else []
    return {
        **_explained(shown, steps),
        "evidence": evidence,
        "last_run": run,
        "last_change_at": latest or None,
        "input": {"digest": known.found.digest, "package_digest": known.found.package_digest},
        "keys": _keys(build, known.source.name, skill_id),
    }


def _explained(shown: dict[str, Any], steps: list[dict[str, Any]]) -> dict[str, Any]:
    """All fields of an explanation, those that a problem lacks left empty."""
    return {
        **{key: shown[key] for key in (*_SHOWN_BY_WHY, "next")},
        "evidence": [],
        "last_run": "",
        "last_change_at": None,
        "input": {},
        "changed_input": _changed_input(steps),
        "steps": steps,
        "cut_off": _cut_off(steps, shown["status"]),
        "keys": {},
    }


def _changed_input(steps: list[dict[str, Any]]) -> str:
    """Which input made the last change, told by the digests of SKILL.md and of the whole package that scan left."""
    scan = next((row for row in steps if row["step"] == "scan"), None)
    if not steps:
        return ""
    if scan is None:
        return "not its own files, but the vocabulary, the configuration, another skill or the program"
    if not scan["before"]:
        return "the skill is new"
    before, after = scan["before"].split(), scan["after"].split()
    if before[:1] != after[:1]:
        return "its SKILL.md"
    return "a bundled file" if before != after else "none: it was read again, by a new program or after a touch"


def _cut_off(steps: list[dict[str, Any]], status: str) -> str:
    """Where the last change stopped: what came out as before, and what therefore did not run."""
    if not steps:
        return ""
    if status != "indexed":
        return "select: the skill is not in the index, so no later step runs for it"
    reached = {row["step"] for row in steps}
    idle = [step for step in STEPS if step not in reached]
    same = [row["step"] for row in steps if row["computed"] and not row["changed"]]
    if not idle:
        return ""
    because = f"{', '.join(same)} gave the same result; " if same else ""
    return f"{because}nothing to do in {', '.join(idle)}, whose inputs are as before"


def _keys(build: Build, source: str, skill_id: str) -> dict[str, str]:
    rows = {step: _row(build, step, source, Keyed, skill_id) for step in ("descriptor", "terms", "embed")}
    return {step: row.key for step, row in rows.items() if row is not None}
