"""`retrieval build`: run the graph, print the account, and end with the code that says how it went."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pipeline.cli import output
from pipeline.cli.common import opened
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engine.build import Build

_COUNTED = ("scan", "categorize", "descriptor", "card", "document", "section", "terms", "embed", "upsert")
_PENDING = {
    "duplicate": "folded into another as duplicates: retrieval status --duplicates",
    "suppressed": "left to the harness that shows them: retrieval status --suppressed",
    "review": "waiting for a category, out of every answer until then: retrieval status --review",
    "problem": "not indexed because of a problem: retrieval status --problems",
}


class How(NamedTuple):
    """How to build. wait: seconds for another run to finish, None for the setting's."""

    dry_run: bool = False
    rebuild_store: bool = False
    wait: float | None = None


def build(sources: Sequence[str], config: str, how: How, *, as_json: bool) -> int:
    """Build, or show what a build would do. Returns the exit code."""
    if how.wait is not None and math.isnan(how.wait):
        raise OperatorError("--wait is not a number", next_step="give it seconds", code=ExitCode.USAGE)
    with opened(config, only=sources, quiet=as_json) as run:
        run.rebuild_store = how.rebuild_store
        if how.dry_run:
            return _foresee(run, as_json=as_json)
        run.lock.acquire(run.settings.lock_timeout if how.wait is None else how.wait)
        account = _run(run)
    if as_json:
        output.emit(account)
    else:
        _print(account)
    return int(account["exit_code"])


def _run(run: Build) -> dict[str, Any]:
    """Run the graph and keep the account, of a failure too, for `status`."""
    from pipeline.engine import files, graph

    try:
        graph.run(run)
        account = summary(run)
    except OperatorError as error:
        failed = {"run": run.report.run, "started": run.report.started, "error": error.as_dict()}
        files.write(run.paths.last_run, msgspec.json.encode(failed))
        raise
    files.write(run.paths.last_run, msgspec.json.encode(account))
    return account


def summary(run: Build) -> dict[str, Any]:
    """The account of a finished run with what is pending, and its exit code."""
    from pipeline.admin import account, references
    from pipeline.engine import generation

    pointer = generation.current(run.paths.snapshots)
    held = generation.read_manifest(run.paths.snapshots / pointer.generation) if pointer else None
    counts = held.counts if held else {}
    totals = account.counted(counts)
    warnings = account.configured(run)
    paths = {source.name: source.path for source in run.sources if source.available}
    empty = [name for name, row in counts.items() if not row["found"] and name in paths]
    notes = [*run.report.notes, *(f"source {name} has no SKILL.md below {paths[name]}" for name in empty)]
    referenced = references.counts(run, held)
    unread = sum(row["problem"] for row in referenced.values())
    pending = totals["review"] or totals["problem"] or unread or warnings
    return {
        **run.report.as_dict(),
        "notes": notes,
        "generation": pointer.generation if pointer else "",
        "totals": totals,
        "references": referenced,
        "warnings": warnings,
        "exit_code": int(ExitCode.PROBLEMS if pending else ExitCode.OK),
    }


def _print(account: dict[str, Any]) -> None:
    totals, seconds = account["totals"], account["seconds"]
    skills = output.count(totals["indexed"], "skill")
    did = [
        f"{name} {row['executed']}" for name, row in account["steps"].items() if row["executed"] and name in _COUNTED
    ]
    if account["published"]:
        output.say(f"{skills} indexed in {seconds:.1f} s (computed: {', '.join(did) or 'nothing'})")
    else:
        output.say(f"{skills} indexed, nothing new ({seconds:.1f} s)")
    for name, row in account["references"].items():
        counted = f"{output.count(row['sections'], 'section')} of {output.count(row['documents'], 'document')}"
        output.say(f"  {name}: {counted}")
        if row["problem"]:
            output.say(f"  {row['problem']} {_PENDING['problem']}")
    for key, hint in _PENDING.items():
        if totals[key]:
            output.say(f"  {totals[key]} {hint}")
    for note in account["notes"]:
        output.say(f"  note: {output.plain(note)}")
    for warning in account["warnings"]:
        output.warn(warning)


def _foresee(run: Build, *, as_json: bool) -> int:
    from pipeline.engine.plan import plan

    foreseen: dict[str, Any] = plan(run)
    run.progress.close()
    if as_json:
        output.emit(foreseen)
        return int(ExitCode.OK)
    output.table(
        [(name, row["execute"], row["reuse"], row["remove"]) for name, row in foreseen["steps"].items()],
        ("step", "compute", "reuse", "remove"),
    )
    output.say(
        "this is what a build would do; nothing was done" if foreseen["changes"] else "a build would change nothing"
    )
    return int(ExitCode.OK)
