"""Choosing at most one skill among candidates: the interface of the selectors, which lie here a file each.

A selector sees the catalog only through a Shelf and answers with a Choice. It fails closed: whoever misbehaves, is late or
breaks off has chosen nothing, and the reason says so.
"""

from __future__ import annotations

from threading import Event
from typing import Protocol

import msgspec


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A skill on offer. score: the fused score, 0 to about 1.1. ranks: its rank in each lane that found it."""

    id: str
    name: str
    description: str
    source: str
    state: str
    categories: tuple[str, ...]
    score: float
    ranks: dict[str, int]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a SKILL.md. text: characters `offset` to `offset + len(text)` of `total`. neighbours: IDs near it in the graph."""

    id: str
    name: str
    text: str
    offset: int
    total: int
    neighbours: tuple[str, ...] = ()


class Shelf(Protocol):
    """What a selector may see. Bound to one harness and one snapshot; only reads; callable from any thread."""

    def search(self, query: str, limit: int) -> list[Candidate]:
        """The best skills for a query. Raises OperatorError for a query that cannot be used."""

    def read(self, skill_id: str, offset: int = 0, limit: int = 12_000) -> Page:
        """Part of a skill's SKILL.md. Raises OperatorError for an ID that is not on the shelf or a file that is gone."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What a selector decided.

    id: the chosen skill, "" for none. reason: one sentence, the model's own or ours. failed: no decision was made
    (misbehaviour, deadline, unreachable), so `id` is "" and `reason` says why; "none fits" is a decision, not a failure.
    considered: IDs that were read. offered: where nothing was decided, the short list that the calling agent chooses from.
    tool_calls: how many the model made.
    """

    selector: str
    id: str = ""
    reason: str = ""
    failed: bool = False
    considered: tuple[str, ...] = ()
    offered: tuple[Candidate, ...] = ()
    tool_calls: int = 0
    milliseconds: float = 0.0


class Selector(Protocol):
    """One way to choose. `close` ends whatever it keeps running; it may be called twice."""

    name: str

    def choose(
        self, query: str, candidates: list[Candidate], shelf: Shelf, *, deadline: float, cancelled: Event
    ) -> Choice:
        """The choice for a query. deadline: `time.monotonic()` by which to have answered. Never raises for misbehaviour."""

    def close(self) -> None:
        """End what is kept running."""
