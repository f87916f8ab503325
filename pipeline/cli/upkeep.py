"""`retrieval verify`, `doctor`, `graph` and `clean`."""

from __future__ import annotations

from pipeline.cli import output
from pipeline.cli.common import open_build
from serve.errors import ExitCode, OperatorError


def verify(config: str, *, as_json: bool) -> int:
    """Compare the published index with the sources, byte by byte. Returns 0 only when they agree."""
    from pipeline.admin.verify import verify

    build = open_build(config, quiet=as_json)
    try:
        result = verify(build)
    finally:
        build.close()
    if as_json:
        output.emit(result)
    else:
        for row in result["disagreements"]:
            output.say(f"{output.styled(row['part'], 'red')}  {output.plain(row['what'])}")
        checked = ", ".join(f"{count} {name}" for name, count in result["checked"].items())
        output.say(f"{len(result['disagreements'])} disagreements; checked {checked}")
        if result["disagreements"]:
            output.say("next: run `retrieval build`, then verify again")
    return int(ExitCode.FAILED if result["disagreements"] else ExitCode.OK)


def doctor(config: str, *, as_json: bool) -> int:
    """Run all checks. Returns 1 when one failed, 3 when one warns."""
    from pipeline.admin.doctor import examine

    checks = examine(config)
    if as_json:
        output.emit([check._asdict() for check in checks])
    else:
        marks = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red"), "info": ("·", "dim")}
        for check in checks:
            mark, style = marks[check.result]
            output.say(f"{output.styled(mark, style)} {check.name}: {output.plain(check.detail)}")
            if check.next_step and check.result in {"warn", "fail"}:
                output.say(f"    next: {output.plain(check.next_step)}")
    results = {check.result for check in checks}
    return int(ExitCode.FAILED if "fail" in results else ExitCode.PROBLEMS if "warn" in results else ExitCode.OK)


def graph(form: str, config: str, *, as_json: bool) -> int:
    """Print the task graph with each task's state. Returns the exit code."""
    from pipeline.engine.picture import dot, states, text

    if form not in {"text", "dot"}:
        raise OperatorError(f"there is no format `{form}`", next_step="use text or dot", code=ExitCode.USAGE)
    build = open_build(config, quiet=True)
    try:
        nodes = states(build)
    finally:
        build.close()
    if as_json:
        output.emit([node._asdict() for node in nodes])
    else:
        output.say(dot(nodes) if form == "dot" else text(nodes))
    return int(ExitCode.OK)


def clean(config: str, *, memo: bool, dry_run: bool, as_json: bool) -> int:
    """Remove what builds made, under the writer lock. Returns the exit code."""
    from pipeline.admin.clean import clean

    build = open_build(config, quiet=True)
    try:
        removed = clean(build, memo=memo, dry_run=dry_run)
    finally:
        build.close()
    if as_json:
        output.emit({"removed": [str(path) for path in removed], "dry_run": dry_run})
    else:
        for path in removed:
            output.say(f"{'would remove' if dry_run else 'removed'} {path}")
        if not removed:
            output.say("there is nothing to remove")
    return int(ExitCode.OK)
