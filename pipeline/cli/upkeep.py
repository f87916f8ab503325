"""`retrieval verify`, `doctor`, `graph` and `clean`."""

from __future__ import annotations

from pipeline.cli import output
from pipeline.cli.common import opened
from serve.errors import ExitCode, OperatorError


def verify(config: str, *, as_json: bool) -> int:
    """Compare the published index with the sources, byte by byte. Returns 0 only when they agree."""
    from pipeline.admin.verify import verify

    with opened(config, quiet=as_json) as build:
        result = verify(build)
    if as_json:
        output.emit(result)
    else:
        for row in result["disagreements"]:
            output.say(f"{output.styled(row['part'], 'red')}: {output.plain(row['what'])}")
        unlisted = result["count"] - len(result["disagreements"])
        if unlisted:
            output.say(f"and {unlisted} more")
        checked = ", ".join(f"{count} {name}" for name, count in result["checked"].items())
        output.say(f"{output.count(result['count'], 'disagreement')}; checked {checked}")
        if result["next"]:
            output.say(f"next: {result['next']}")
    return int(ExitCode.FAILED if result["count"] else ExitCode.OK)


def doctor(config: str, *, as_json: bool) -> int:
    """Run all checks. Returns 1 when one failed (4 when only services are out of reach), 3 when one warns."""
    from pipeline.admin.doctor import examine

    checks = examine(config)
    if as_json:
        output.emit([check.as_dict() for check in checks])
    else:
        marks = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red"), "info": ("·", "dim")}
        for check in checks:
            mark, style = marks[check.result]
            output.say(f"{output.styled(mark, style)} {output.plain(check.name)}: {output.plain(check.detail)}")
            if check.where:
                output.say(f"    at {output.plain(check.where)}")
            if check.next_step and check.result in {"warn", "fail"}:
                output.say(f"    next: {output.plain(check.next_step)}")
    failed = {check.code for check in checks if check.result == "fail"}
    if failed:
        return int(ExitCode.UNREACHABLE if failed == {ExitCode.UNREACHABLE} else ExitCode.FAILED)
    return int(ExitCode.PROBLEMS if any(check.result == "warn" for check in checks) else ExitCode.OK)


def graph(form: str, config: str, *, as_json: bool) -> int:
    """Print the task graph with each task's state. Returns the exit code."""
    if form not in {"text", "dot"}:
        raise OperatorError(f"there is no format `{form}`", next_step="use text or dot", code=ExitCode.USAGE)
    from pipeline.admin.graph import nodes
    from pipeline.engine.picture import dot, text

    with opened(config) as build:
        found = nodes(build)
    if as_json:
        output.emit([node._asdict() for node in found])
    else:
        output.say(dot(found) if form == "dot" else text(found))
    return int(ExitCode.OK)


def clean(config: str, *, memo: bool, dry_run: bool, as_json: bool) -> int:
    """Remove what builds made, under the writer lock. Returns the exit code."""
    from pipeline.admin.clean import clean

    with opened(config, with_sources=False) as build:
        removed, kept = clean(build, memo=memo, dry_run=dry_run)
    if as_json:
        left = [{"what": what, "why": why} for what, why in kept]
        output.emit({"removed": [str(path) for path in removed], "kept": left, "dry_run": dry_run})
        return int(ExitCode.OK)
    for path in removed:
        output.say(f"{'would remove' if dry_run else 'removed'} {output.plain(path)}")
    if not removed:
        output.say("there is nothing to remove")
    for what, why in kept:
        output.say(output.styled(f"kept {output.plain(what)}: {why}", "dim"))
    return int(ExitCode.OK)
