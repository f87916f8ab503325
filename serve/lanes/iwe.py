"""The IWE lane: fuzzy and BM25 ranks over the catalog's cards, fused by IWE, and which cards hang on the same hubs.

IWE 0.29 makes its word index anew for each search, so that a search costs about 0.3 ms of CPU a card. Told no program, the lane
therefore starts one only for a catalog that can be searched within the budget; told one, it starts it for any. What is late is
left out with that reason, and asked again after longer and longer rests.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from serve.cards import CARDS, DIGEST, card_key, short_digest
from serve.lanes.hits import NO_HITS, Hits, Mask
from serve.lanes.iwec import Iwec
from serve.lanes.iwec_protocol import NotStarted, Patience, Question, Reply, Tool, on_path
from serve.ranking import Lane
from serve.snapshot import Snapshot
from serve.text import tokens

NAME = "iwe"
OFF = "off"
CARD_COST = 0.0003  # seconds of CPU that a search takes a card
MAX_QUERY = 4_000  # characters; a task of that length is described before it ends
FUZZY_WORDS = 4  # the fuzzy part finds names typed in part, as letters in their order: no sentence is one
NEIGHBOUR_BUDGET = 0.25
SIBLINGS = 300  # cards of the same hubs that are compared
COUNTING = 10.0  # seconds
_SETTLING = (0.2, 1.0, 4.0)  # seconds after which it is looked again whether IWE has seen a change
# The index page leads to the pages above all cards and these to the hubs: everything up to there is no card.
_NO_HUBS = [{"key": "index", "depth": 2}]


class Search(NamedTuple):
    """A search on its way; None where nothing was asked."""

    limit: int
    question: Question | None


class IweLane:
    """The lane over one catalog. All methods may be called from any thread; none raises for what IWE does.

    command: "" for `iwec` on PATH, started only where it can keep the budget; "off" for none; else a program, always
    started. budget: seconds that a search may take of a query.
    """

    def __init__(
        self, catalog: Path, command: str = "", budget: float = 0.03, patience: Patience | None = None
    ) -> None:
        self.catalog = catalog
        self.command = command
        self.budget = budget
        self._iwec = Iwec(catalog, self._program, patience)
        self._lock = threading.Lock()
        self._keys: tuple[str, dict[str, int]] = ("", {})
        self._counted = ""
        self._counter: threading.Thread | None = None
        self._closed = threading.Event()

    def start(self) -> None:
        """Start the program in the background."""
        if self.command != OFF:
            self._iwec.start()

    def hits(
        self, query: str, limit: int, snapshot: Snapshot, mask: Mask | None = None, budget: float | None = None
    ) -> Lane:
        """The lane's part in an answer: its rows best first, or the reason why it did not take part.

        mask: bool[n], rows that may take part. budget: seconds, if not the lane's own. The score of a row is 1 / its rank: IWE
        gives none. Cards that the snapshot does not have are passed over.
        """
        return self.end(self.begin(query, limit, budget), snapshot, mask)

    def begin(self, query: str, limit: int, budget: float | None = None) -> Search:
        """Ask, and go on with other things; the budget runs from here."""
        text = asked(query)
        if self.command == OFF or not text:
            return Search(limit, None)
        arguments: dict[str, Any] = {"lexical": text, "limit": limit + 1, "project": "$key", "not_in": _NO_HUBS}
        if len(text.split()) <= FUZZY_WORDS:
            arguments["fuzzy"] = text.lower()  # a capital would make it tell capitals apart
        return Search(limit, self._iwec.ask("search", Tool.FIND, arguments, self.budget if budget is None else budget))

    def end(self, search: Search, snapshot: Snapshot, mask: Mask | None = None) -> Lane:
        """What `hits` gives, for a search that was begun. It waits for what is left of the budget."""
        if self.command == OFF:
            return Lane(name=NAME, reason="switched off")
        if search.question is None:
            return Lane(name=NAME, hits=NO_HITS)
        self._count(snapshot)
        reply = self._iwec.collect(search.question)
        found = _documents(reply)
        if found is None:
            return Lane(name=NAME, reason=reply.reason or "IWE gave an answer of another form")
        keys = [str(item.get("key")) for item in found]
        return Lane(name=NAME, hits=_hits(keys, self._rows_of(snapshot), snapshot, mask, search.limit))

    def neighbours(self, skill_id: str, limit: int, budget: float = NEIGHBOUR_BUDGET) -> list[str]:
        """IDs of skills whose cards hang on the same category and source pages, the nearest first; none when IWE is not there.

        Nearer is what shares more pages, then what has more words of its name in common. They may be ahead of a snapshot.
        """
        own = card_key(skill_id)
        reply = self._ask_near(Tool.RETRIEVE, {"keys": [own], "max_document_tokens": 1}, budget)
        found = _documents(reply)
        if not found:
            return []
        pages = _parents(found[0])
        categories = [page for page in pages if page.startswith("categories/")] or pages
        siblings: dict[str, dict[str, Any]] = {}
        for selector, under in (("in", pages), ("in", categories), ("in_any", categories)):
            if under and len(siblings) <= limit:
                siblings = {**self._below(selector, under, budget), **siblings}
        siblings.pop(own, None)
        return _nearest(siblings, frozenset(pages), str(found[0].get("title", "")), limit)

    def status(self) -> dict[str, Any]:
        """What runs and how it does, for people."""
        if self.command == OFF:
            return {"running": False, "reason": "switched off"}
        return {**self._iwec.status(), "budget": self.budget}

    def close(self) -> None:
        """End the program. May be called twice."""
        self._closed.set()
        self._iwec.close()
        with self._lock:
            counter = self._counter
        if counter is not None:
            counter.join()

    def _program(self) -> str:
        """The program to start. Raises NotStarted."""
        found = on_path(self.command or "iwec")
        if not self.command:
            cards = _cards(self.catalog)
            if cards * CARD_COST > self.budget:
                raise NotStarted(
                    f"a search over {cards} cards would take IWE about {cards * CARD_COST:.1f} s of CPU and it may take "
                    f"{self.budget * 1000:.0f} ms; name the program to have it started all the same"
                )
        return found

    def _rows_of(self, snapshot: Snapshot) -> dict[str, int]:
        """The row of each card by the digest that ends its key, made once a generation."""
        generation, rows = self._keys
        if generation != snapshot.generation:
            rows = {short_digest(skill_id): row for row, skill_id in enumerate(snapshot.ids)}
            self._keys = (snapshot.generation, rows)
        return rows

    def _ask_near(self, tool: Tool, arguments: dict[str, Any], budget: float) -> Reply:
        return self._iwec.collect(self._iwec.ask("neighbours", tool, arguments, budget))

    def _below(self, selector: str, pages: list[str], budget: float) -> dict[str, dict[str, Any]]:
        """Cards below all ("in") or any ("in_any") of some pages, by key."""
        under = [{"key": page, "depth": 1} for page in pages[:8]]
        fields = "key=$key,title=$title,id,includedBy=$includedBy"
        found = _documents(self._ask_near(Tool.FIND, {selector: under, "limit": SIBLINGS, "project": fields}, budget))
        return {str(item.get("key")): item for item in found or ()}

    def _count(self, snapshot: Snapshot) -> None:
        """Once a generation, see in the background whether IWE holds a card of each skill: it may miss changes of the catalog."""
        with self._lock:
            if self._counted == snapshot.generation or not self._iwec.status()["running"]:
                return
            if self._counter is not None and self._counter.is_alive():
                return
            self._counted = snapshot.generation
            self._counter = threading.Thread(target=self._compare, args=(snapshot.ids,), name="iwec-count", daemon=True)
            self._counter.start()

    def _compare(self, ids: list[str]) -> None:
        for skill_id in ids[:1]:  # the first document that is retrieved waits for tables that are made once
            ask = {"keys": [card_key(skill_id)], "max_document_tokens": 1}
            self._iwec.collect(self._iwec.ask("count", Tool.RETRIEVE, ask, COUNTING))
        arguments = {"limit": 1, "project": "$key", "not_in": _NO_HUBS}
        held = -1
        for pause in (*_SETTLING, 0.0):
            reply = self._iwec.collect(self._iwec.ask("count", Tool.FIND, arguments, COUNTING))
            if not reply.texts:
                return
            held = _matched(reply) - 1  # the index page is no card
            if held == len(ids) or self._closed.wait(pause):
                return
        self._iwec.restart(f"IWE held {held} cards of {len(ids)}")


def asked(query: str) -> str:
    """A query as IWE is asked: one line without controls and halves of characters, cut at a word."""
    clean = "".join(sign if sign.isprintable() else " " for sign in query[: 4 * MAX_QUERY])
    text = " ".join(clean.split())
    if len(text) <= MAX_QUERY:
        return text
    head = text[:MAX_QUERY]
    return head.rpartition(" ")[0] or head


def _cards(catalog: Path) -> int:
    """How many cards the catalog holds; 0 when it cannot be read."""
    return sum(len(files) for _folder, _folders, files in os.walk(catalog / CARDS))


def _documents(reply: Reply) -> list[dict[str, Any]] | None:
    """The documents of an answer; None when there is none or it is of another form."""
    if not reply.texts:
        return None
    try:
        found = json.loads(reply.texts[0])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        return None
    return found


def _matched(reply: Reply) -> int:
    """How many documents there are, of which an answer gives the first."""
    if len(reply.texts) > 1:
        try:
            return int(json.loads(reply.texts[1])["matched"])
        except (ValueError, KeyError, TypeError):
            return -1
    return len(_documents(reply) or ())


def _hits(keys: list[str], rows_of: dict[str, int], snapshot: Snapshot, mask: Mask | None, limit: int) -> Hits:
    rows = []
    for key in keys:
        row = rows_of.get(key[-DIGEST:]) if key.startswith(CARDS) else None
        if row is not None and card_key(snapshot.ids[row]) == key and (mask is None or mask[row]):
            rows.append(row)
    rows = rows[:limit]
    return Hits(np.array(rows, dtype=np.int64), 1.0 / np.arange(1, len(rows) + 1, dtype=np.float64))


def _nearest(siblings: dict[str, dict[str, Any]], pages: frozenset[str], title: str, limit: int) -> list[str]:
    words = frozenset(tokens(title))

    def order(entry: tuple[str, dict[str, Any]]) -> tuple[int, float, str]:
        key, item = entry
        other = frozenset(tokens(str(item.get("title", ""))))
        return -len(pages & frozenset(_parents(item))), -len(words & other) / max(len(words | other), 1), key

    ids = [str(item.get("id")) for _key, item in sorted(siblings.items(), key=order)]
    kept = [skill for skill in ids if card_key(skill) in siblings]  # an ID that a card cannot show as it is names none
    return kept[: max(limit, 0)]


def _parents(document: dict[str, Any]) -> list[str]:
    """Keys of the pages that a document hangs on."""
    edges = document.get("includedBy")
    return [str(edge.get("key")) for edge in edges if isinstance(edge, dict)] if isinstance(edges, list) else []
