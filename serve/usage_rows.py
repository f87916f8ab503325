"""What the usage record says of a query, and how it lies in the file: bounded, and of texts that UTF-8 can hold."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

MAX_QUERY = 2_000  # characters that are kept
MAX_REASON = 500
MAX_CANDIDATES = 20


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One query as it is recorded.

    lanes: "used" or the reason why not, by name. candidates: IDs offered with their scores, best first. chosen: "" for none.
    failed: no decision was made, for the reason given.
    """

    tool: str
    query: str
    harness: str = ""
    lanes: dict[str, str] = {}
    generation: str = ""
    candidates: tuple[tuple[str, float], ...] = ()
    chosen: str = ""
    selector: str = ""
    reason: str = ""
    failed: bool = False
    milliseconds: float = 0.0


class Row(NamedTuple):
    """A record. at: seconds since the epoch."""

    query_id: str
    at: float
    event: Event


def packed(query_id: str, at: float, event: Event) -> tuple[object, ...]:
    """A record as a row of the file, long texts cut."""
    lanes = msgspec.json.encode({_clean(name): _clean(said)[:MAX_REASON] for name, said in event.lanes.items()})
    offered = [(_clean(skill), round(score, 6)) for skill, score in event.candidates[:MAX_CANDIDATES]]
    return (
        query_id,
        at,
        _clean(event.harness),
        _clean(event.tool),
        _clean(event.query[:MAX_QUERY]),
        lanes.decode(),
        event.generation,
        msgspec.json.encode(offered).decode(),
        _clean(event.chosen),
        _clean(event.selector),
        _clean(event.reason)[:MAX_REASON],
        int(event.failed),
        event.milliseconds,
    )


def unpacked(row: tuple[Any, ...]) -> Row:
    """A row of the file as a record."""
    query_id, at, harness, tool, query, lanes, generation, candidates, chosen, selector, reason, failed, took = row
    event = Event(
        tool=tool,
        query=query,
        harness=harness,
        lanes=msgspec.json.decode(lanes, type=dict[str, str]),
        generation=generation,
        candidates=msgspec.json.decode(candidates, type=tuple[tuple[str, float], ...]),
        chosen=chosen,
        selector=selector,
        reason=reason,
        failed=bool(failed),
        milliseconds=took,
    )
    return Row(query_id, at, event)


def _clean(text: str) -> str:
    """A text that UTF-8 can hold: halves of surrogate pairs are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
