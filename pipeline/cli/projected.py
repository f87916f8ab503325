"""`retrieval projected list`, `clear` and `repair`: the copies in the harnesses' lanes."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from pipeline.cli import output
from pipeline.cli.common import settings
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from serve.projection.layout import Layout
    from serve.projection.upkeep import Cleared, Listed, Untouched


def list_projected(harness: str, config: str, *, as_json: bool) -> int:
    """Print the copies of one harness or of all. Returns 3 when one is missing or was changed, or one is not listed."""
    from serve.projection import upkeep

    found, rest = upkeep.listing(_layout(harness, config), harness)
    if as_json:
        output.emit({"projections": [item.as_dict() for item in found], "untouched": _untouched(rest)})
    else:
        _table(found)
        for item in rest:
            output.say(output.styled(f"{output.plain(item.what)}: {item.reason}", "yellow"))
    wrong = any(item.state != "ok" for item in found) or any("repair" in item.reason for item in rest)
    return int(ExitCode.PROBLEMS if wrong else ExitCode.OK)


def clear(ids: Sequence[str], harness: str, config: str, *, everything: bool, dry_run: bool, as_json: bool) -> int:
    """Remove copies: those of the named skills, all of them, or the ones ticked on a terminal.

    Returns 3 when something that was to go had to stay.
    """
    from serve.projection import upkeep

    layout = _layout(harness, config)
    if ids and everything:
        raise OperatorError(
            "both IDs and --all were given", next_step="name the copies, or leave the IDs out", code=ExitCode.USAGE
        )
    wanted: Sequence[str] | None = None if everything else ids
    if not ids and not everything:
        if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise OperatorError(
                "nothing says which copies are meant, and there is no terminal to ask on",
                next_step="name their IDs (see `retrieval projected list`), or add --all",
                code=ExitCode.USAGE,
            )
        return _ask(layout, harness, dry_run=dry_run)
    done = upkeep.clear(layout, harness, wanted, dry_run=dry_run)
    _print_cleared(done, dry_run=dry_run, as_json=as_json)
    return int(ExitCode.PROBLEMS if ids and done.untouched else ExitCode.OK)


def repair(config: str, *, as_json: bool) -> int:
    """Bring manifest and markers together again and remove what killed processes left. Returns the exit code."""
    from serve.projection import upkeep

    layout = _layout("", config)
    done = upkeep.repair(layout)
    if as_json:
        output.emit(
            {
                "adopted": [str(layout.lane(row.harness) / row.folder) for row in done.adopted],
                "forgotten": [str(layout.lane(row.harness) / row.folder) for row in done.forgotten],
                "swept": [str(path) for path in done.swept],
                "untouched": _untouched(done.foreign),
            }
        )
        return int(ExitCode.OK)
    for row in done.adopted:
        output.say(f"listed again: {output.plain(layout.lane(row.harness) / row.folder)}  {output.plain(row.id)}")
    for row in done.forgotten:
        output.say(f"no longer listed: {output.plain(layout.lane(row.harness) / row.folder)}  {output.plain(row.id)}")
    for path in done.swept:
        output.say(f"removed what a killed process left: {output.plain(path)}")
    if not (done.adopted or done.forgotten or done.swept):
        output.say("there is nothing to repair")
    _print_untouched(done.foreign)
    return int(ExitCode.OK)


def _ask(layout: Layout, harness: str, *, dry_run: bool) -> int:
    """Let a person tick copies on the terminal, then remove those."""
    from pipeline.cli.checklist import choose
    from serve.projection import upkeep

    found, _rest = upkeep.listing(layout, harness)
    if not found:
        output.say("there are no projected copies")
        return int(ExitCode.OK)
    lines = [f"{item.row.harness}  {item.row.name}  {item.row.id}" for item in found]
    ticked = choose("Copies to remove", lines)
    if not ticked:
        output.say("nothing was removed")
        return int(ExitCode.OK)
    done = upkeep.Cleared([], [], [])
    for name in sorted({found[at].row.harness for at in ticked}):
        chosen = [found[at].row.id for at in ticked if found[at].row.harness == name]
        part = upkeep.clear(layout, name, chosen, dry_run=dry_run)
        done = upkeep.Cleared(done.removed + part.removed, done.kept + part.kept, done.untouched + part.untouched)
    _print_cleared(done, dry_run=dry_run, as_json=False)
    return int(ExitCode.PROBLEMS if done.untouched else ExitCode.OK)


def _layout(harness: str, config: str) -> Layout:
    from serve.harnesses import harness as harness_named
    from serve.projection.layout import Layout

    if harness:
        harness_named(harness)
    return Layout(settings(config, with_sources=False).data_dir)


def _table(found: Sequence[Listed]) -> None:
    if not found:
        output.say("there are no projected copies")
        return
    now = time.time()
    rows = [
        (
            item.row.harness,
            item.row.name,
            item.state,
            len(item.row.paths),
            output.age(now - item.row.projected_at),
            item.row.id,
        )
        for item in found
    ]
    output.table(rows, ("harness", "name", "state", "files", "age", "id"))


def _print_cleared(done: Cleared, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        output.emit(
            {
                "removed": [item.as_dict() for item in done.removed],
                "kept": _untouched(done.kept),
                "untouched": _untouched(done.untouched),
                "dry_run": dry_run,
            }
        )
        return
    for item in done.removed:
        output.say(f"{'would remove' if dry_run else 'removed'} {output.plain(item.path)}  {output.plain(item.row.id)}")
    if not done.removed:
        output.say("there is nothing to remove")
    for kept in done.kept:
        output.say(f"kept {output.plain(kept.what)}: {output.plain(kept.reason)}")
    _print_untouched(done.untouched)
    if done.removed and not dry_run:
        _print_reload(sorted({item.row.harness for item in done.removed}))


def _print_reload(harnesses: Sequence[str]) -> None:
    from serve.harnesses import harness as harness_named

    for name in harnesses:
        known = harness_named(name)
        if known.reload:
            output.say(output.styled(f"in a running session of {known.title}: {known.reload}", "dim"))


def _print_untouched(rest: Sequence[Untouched]) -> None:
    for item in rest:
        output.say(output.styled(f"left alone: {output.plain(item.what)}: {output.plain(item.reason)}", "dim"))


def _untouched(rest: Sequence[Untouched]) -> list[dict[str, str]]:
    return [{"what": item.what, "why": item.reason} for item in rest]
