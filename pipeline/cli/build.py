"""`retrieval build`: run the graph, print the account, and end with the code that says how it went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pipeline.cli import output
from pipeline.cli.common import open_build
from pipeline.engine import files
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from pipeline.engine.build import Build


def build(sources: list[str], config: str, *, dry_run: bool, wait: float | None, as_json: bool) -> int:
    """Build, or with dry_run show what a build would do. Returns the exit code."""
    run = open_build(config, only=frozenset(sources), quiet=as_json)
    _check_names(run, sources)
    try:
        if dry_run:
            from pipeline.engine.plan import plan

            return _print_plan(plan(run), as_json=as_json)
        return _build(run, wait, as_json=as_json)
    finally:
        run.close()


def _check_names(run: Build, sources: list[str]) -> None:
    known = [source.name for source in run.sources]
    for name in sources:
        if name not in known:
            raise OperatorError(
                f"there is no enabled source `{output.plain(name)}`",
                where=str(run.settings.config_file or ""),
                next_step=f"use one of: {', '.join(known) or '(none is configured)'}",
                code=ExitCode.USAGE,
            )


def _build(run: Build, wait: float | None, *, as_json: bool) -> int:
    from pipeline.engine import graph

    run.lock.acquire(run.settings.lock_timeout if wait is None else wait)
    graph.run(run)
    account = summary(run)
    files.write(run.paths.last_run, msgspec.json.encode(account))
    run.progress.close()
    if as_json:
        output.emit(account)
    else:
        _print(run, account)
    return int(account["exit_code"])  # type: ignore[call-overload]  # a plain dictionary: its values are objects


def summary(run: Build) -> dict[str, object]:
    """The account of a finished run with what is pending, and its exit code."""
    from pipeline.engine import generation

    pointer = generation.current(run.paths.snapshots)
    held = generation.read_manifest(run.paths.snapshots / pointer.generation) if pointer else None
    counts = held.counts if held else {}
    totals = {
        key: sum(row[key] for row in counts.values())
        for key in ("found", "indexed", "duplicate", "suppressed", "review", "problem")
    }
    warnings = [warning.as_dict() for warning in run.settings.warnings]
    pending = totals["review"] or totals["problem"] or warnings
    account = run.report.as_dict()
    account["generation"] = pointer.generation if pointer else ""
    return {
        **account,
        "totals": totals,
        "warnings": warnings,
        "exit_code": int(ExitCode.PROBLEMS if pending else ExitCode.OK),
    }


def _print(run: Build, account: dict[str, object]) -> None:
    totals: dict[str, int] = account["totals"]  # type: ignore[assignment]
    steps = run.report.steps
    did = [f"{name} {count.executed}" for name, count in steps.items() if count.executed and name in _COUNTED]
    seconds = account["seconds"]
    if run.report.published:
        output.say(f"{totals['indexed']} skills indexed in {seconds} s ({', '.join(did) or 'nothing computed'})")
    else:
        output.say(f"{totals['indexed']} skills current ({seconds} s)")
    for key, hint in _PENDING.items():
        if totals[key]:
            output.say(f"  {totals[key]} {hint}")
    for warning in run.settings.warnings:
        output.say(
            f"  warning: {output.plain(warning.what)} ({output.plain(warning.where)}); {output.plain(warning.next_step)}"
        )
    for note in run.report.notes:
        output.say(f"  note: {output.plain(note)}")


_COUNTED = ("scan", "categorize", "descriptor", "card", "terms", "embed", "upsert")
_PENDING = {
    "duplicate": "duplicates folded into them: retrieval status --duplicates",
    "suppressed": "left to the harness that shows them: retrieval status --suppressed",
    "review": "waiting for a category: retrieval status --review",
    "problem": "could not be read: retrieval status --problems",
}


def _print_plan(plan: dict[str, object], *, as_json: bool) -> int:
    if as_json:
        output.emit(plan)
        return int(ExitCode.OK)
    steps: dict[str, dict[str, int]] = plan["steps"]  # type: ignore[assignment]
    output.table(
        [(name, row["execute"], row["reuse"], row["write"], row["remove"]) for name, row in steps.items()],
        ("step", "compute", "reuse", "write", "remove"),
    )
    output.say("nothing was changed" if plan["changes"] else "nothing to do")
    return int(ExitCode.OK)
