"""`retrieval status`: what is indexed per source, what is not and why, and whether all parts are there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pipeline.cli import output
from pipeline.cli.common import open_build
from serve.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS = ("found", "indexed", "duplicate", "suppressed", "review", "problem")


def status(chosen: Sequence[str], config: str, *, as_json: bool) -> int:
    """Show the state of the index; `chosen` statuses are listed skill by skill. Returns the exit code."""
    from pipeline.admin.status import collect

    build = open_build(config, quiet=True)
    try:
        state = collect(build, chosen)
    finally:
        build.close()
    if as_json:
        output.emit(state)
    else:
        _print(state, chosen)
    return int(state["exit_code"])


def _print(state: dict, chosen: Sequence[str]) -> None:
    index = state["index"]
    if index["generation"]:
        age = output.age(time.time() - index["published_at"])
        output.say(f"index {index['generation'][:8]}, {index['skills']} skills, published {age} ago")
    else:
        output.say(output.styled(index["reason"], "yellow"))
    rows = [(name, *(row[key] for key in COLUMNS)) for name, row in state["sources"].items()]
    if rows:
        total = ("total", *(sum(row[i] for row in rows) for i in range(1, len(COLUMNS) + 1)))
        output.table([*rows, total] if len(rows) > 1 else rows, ("source", *COLUMNS))
    for name, lane in state["lanes"].items():
        output.say(f"{name} lane: {output.plain(lane)}")
    output.say(f"store: {output.plain(state['store'])}")
    output.say(f"watcher: {output.plain(state['watcher'])}")
    for warning in state["warnings"]:
        output.say(output.styled(f"warning: {output.plain(warning['warning'])}", "yellow"))
        output.say(f"  at {output.plain(warning['where'])}")
        output.say(f"  next: {output.plain(warning['next'])}")
    for name in chosen:
        _list(name, state["lists"][name])


def _list(name: str, rows: Sequence[dict]) -> None:
    output.say()
    output.say(output.styled(f"{name}: {len(rows)}", "bold"))
    for row in rows:
        output.say(f"  {output.plain(row['id'])}")
        output.say(output.styled(f"    {output.plain(row['reason'])}", "dim"))
        if row.get("next"):
            output.say(output.styled(f"    next: {output.plain(row['next'])}", "dim"))


