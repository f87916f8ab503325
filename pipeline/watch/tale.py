"""What a watcher's state amounts to, in words and warnings, for people and scripts that ask how things are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pipeline.watch import state as states

if TYPE_CHECKING:
    from pathlib import Path

_BY_HAND = "run `retrieval build` after changes, or `retrieval watch`"


class Tale(NamedTuple):
    """summary: one line. running: whether a watcher lives. state: as kept, None for none. warnings: warning, where, next."""

    summary: str
    running: bool
    state: dict[str, Any] | None
    warnings: list[dict[str, str]]


def tell(data: Path) -> Tale:
    """How the watcher of a data directory is. Takes no lock and leaves no trace."""
    state = states.read(data)
    if state is None:
        return Tale(f"none; {_BY_HAND}", running=False, state=None, warnings=[])
    kept = msgspec.to_builtins(state)
    if not states.alive(state):
        return _gone(state, kept, str(data / states.STATE))
    parts = [f"process {state.pid}, {state.now}, {state.backend or 'not watching yet'}"]
    if state.last_event is not None:
        parts.append(f"last event {_ago(state.last_event.at)}")
    if state.last_build is not None:
        parts.append(f"last build {_ago(state.last_build.at)} in {state.last_build.seconds:.2f} s")
    if state.pending:
        parts.append(f"pending: {', '.join(state.pending[:5])}{' and more' if len(state.pending) > 5 else ''}")
    warnings = [_warning("the watcher cannot build", state.problem)] if state.problem else []
    if state.config_problem:
        warnings.append(_warning("the watcher follows an earlier configuration", state.config_problem))
    return Tale("; ".join(parts), running=True, state={**kept, "alive": True}, warnings=warnings)


def _gone(state: states.State, kept: dict[str, Any], where: str) -> Tale:
    kept = {**kept, "alive": False}
    if state.now == states.STOPPED:
        return Tale(f"none, process {state.pid} was stopped; {_BY_HAND}", running=False, state=kept, warnings=[])
    warning = {
        "warning": f"the watcher died: process {state.pid} is gone and did not say that it stops",
        "where": where,
        "next": "start it again with `retrieval watch`; `retrieval build` looks at everything once",
    }
    return Tale(f"dead, it was process {state.pid}; {_BY_HAND}", running=False, state=kept, warnings=[warning])


def _warning(what: str, error: dict[str, Any]) -> dict[str, str]:
    return {
        "warning": f"{what}: {error.get('error', '')}",
        "where": str(error.get("where", "")),
        "next": str(error.get("next", "")),
    }


def _ago(moment: float) -> str:
    seconds = max(0.0, time.time() - moment)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
