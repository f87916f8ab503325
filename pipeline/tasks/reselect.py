"""Selecting again after a small change: what hangs together with it is decided anew, all else stays as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pipeline.engine import manifest
from pipeline.model import Categorized, Found, Selected
from pipeline.tasks import ties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.engine.build import Build
    from pipeline.engine.report import StepCount

MOST = 8  # where more than one in so many skills is reached, deciding them all costs less

_found = msgspec.json.Decoder(Found)
_categorized = msgspec.json.Decoder(Categorized)
_selected = msgspec.json.Decoder(Selected)

Rows = dict[str, Selected]


def remembered(build: Build, names: Sequence[str], token: str) -> dict[str, ties.Ties] | None:
    """What the last run left of each source; None when any of it is missing or of other settings."""
    held = {}
    for name in names:
        found = ties.load(build, name, token)
        if found is None:
            return None
        held[name] = found
    return held


def run(
    build: Build,
    held: dict[str, ties.Ties],
    token: str,
    decide: Callable[[list[Found], dict[str, Categorized]], list[Selected]],
    count: StepCount,
) -> tuple[Rows, Rows] | None:
    """Bring the select manifests up to date. Returns the rows that may have changed, as they were and as they are.

    None, with nothing written, when everything has to be looked at.
    """
    fresh: dict[str, ties.Ties] = {}
    skills: set[str] = set()
    seeds: set[bytes] = set()
    for name, before in held.items():
        if ties.is_current(build, name, before):
            continue
        after = ties.make(build, name, token, before)
        if after is None:
            return None
        fresh[name] = after
        more, tied = ties.changed(before, after)
        skills |= more
        seeds |= tied
    now = {**held, **fresh}
    reached = ties.reached(now, seeds) if seeds else {}
    total = sum(len(item.ids) for item in now.values())
    if sum(map(len, reached.values())) > total // MOST:
        return None
    rows = {row.id: row for row in decide(*_inputs(build, reached))}
    count.executed += len(rows)
    count.reused += total - len(rows)
    was: Rows = {}
    for name in sorted(reached.keys() | fresh.keys()):
        was |= _patch(build, name, held[name].ids, now[name].ids, rows)
    for name in sorted(reached.keys() | fresh.keys()):
        ties.store(build, name, now[name])
    return was, rows


def _inputs(build: Build, reached: Mapping[str, list[int]]) -> tuple[list[Found], dict[str, Categorized]]:
    found: list[Found] = []
    categorized: dict[str, Categorized] = {}
    for name, places in reached.items():
        scanned, others = ties.lines(build, "scan", name), ties.lines(build, "categorize", name)
        found += [_found.decode(scanned[place]) for place in places]
        for place in places:
            row = _categorized.decode(others[place])
            categorized[row.id] = row
    return found, categorized


def _patch(build: Build, source: str, old_ids: list[str], new_ids: list[str], rows: Rows) -> Rows:
    """Write a select manifest with some rows replaced; returns those rows as they were, and the ones that are gone."""
    path = build.paths.manifest("select", source)
    lines = dict(zip(old_ids, path.read_bytes().splitlines(), strict=True))
    kept = [manifest.encode(rows[skill]) if skill in rows else lines[skill] for skill in new_ids]
    manifest.store_raw(path, b"".join([line + b"\n" for line in kept]))
    touched = (rows.keys() | (lines.keys() - set(new_ids))) & lines.keys()
    return {skill: _selected.decode(lines[skill]) for skill in touched}
