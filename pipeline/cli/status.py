"""`retrieval status`: what is indexed per source, what is not and why, and whether all parts are there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pipeline.cli import output
from pipeline.cli.common import opened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COLUMNS = ("found", "indexed", "duplicate", "suppressed", "review", "problem")
_FLAGS = {"duplicate": "--duplicates", "suppressed": "--suppressed", "review": "--review", "problem": "--problems"}


def status(chosen: Sequence[str], config: str, *, as_json: bool) -> int:
    """Show the state of the index; `chosen` statuses are listed skill by skill. Returns the exit code."""
    from pipeline.admin.status import collect

    with opened(config) as build:
        state = collect(build, chosen)
    if as_json:
        output.emit(state)
    else:
        _print(state, chosen)
    return int(state["exit_code"])


def _print(state: Mapping[str, Any], chosen: Sequence[str]) -> None:
    _print_index(state)
    _print_counts(state["sources"], state["totals"], chosen)
    if state["references"]:
        columns = tuple(next(iter(state["references"].values())))
        rows = [(name, *(row[key] for key in columns)) for name, row in state["references"].items()]
        output.table(rows, ("references", *columns))
    for name, lane in state["lanes"].items():
        output.say(f"{name} lane: {output.plain(lane)}")
    for key in ("store", "watcher"):
        output.say(f"{key}: {output.plain(state[key])}")
    output.say(f"made with: {', '.join(f'{name} {number}' for name, number in state['versions'].items())}")
    output.say(f"data: {output.plain(state['data_dir'])}")
    for warning in state["warnings"]:
        output.warn(warning)
    for name in chosen:
        _list(name, state["lists"][name])


def _print_index(state: Mapping[str, Any]) -> None:
    index, last = state["index"], state["last_run"]
    if index["reason"]:
        output.say(output.styled(index["reason"], "yellow"))
    else:
        age = output.age(time.time() - index["published_at"])
        output.say(f"index {index['generation'][:8]}: {output.count(index['skills'], 'skill')}, published {age} ago")
    if state["running"]:
        output.say(f"a build is running: process {state['running'].get('pid') or 'unknown'}")
    elif last and "error" not in last:
        output.say(f"last build: {output.age(time.time() - last['started'])} ago")


def _print_counts(sources: Mapping[str, Mapping[str, int]], totals: Mapping[str, int], chosen: Sequence[str]) -> None:
    rows = [(name, *(row[key] for key in COLUMNS)) for name, row in sources.items()]
    if len(rows) > 1:
        rows.append(("total", *(totals[key] for key in COLUMNS)))
    if rows:
        output.table(rows, ("source", *COLUMNS))
    more = [flag for key, flag in _FLAGS.items() if totals[key] and key not in chosen]
    if more:
        output.say(output.styled(f"listed one by one with {', '.join(more)}", "dim"))


def _list(name: str, rows: Sequence[Mapping[str, str]]) -> None:
    output.say()
    output.say(output.styled(f"{name}: {len(rows)}", "bold"))
    for row in rows:
        output.say(f"  {output.plain(row['id'])}")
        if row["reason"]:
            output.say(output.styled(f"    {output.plain(row['reason'])}", "dim"))
        if row["next"]:
            output.say(output.styled(f"    next: {output.plain(row['next'])}", "dim"))
