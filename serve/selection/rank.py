"""The selector `rank`: no model. Takes the first skill of the ranking when the lanes agree on it, else lets the caller choose.

The calling agent is a model itself. What cannot be decided here is offered to it as a short list, and it calls again with
the exact ID of the one it wants.
"""

from __future__ import annotations

import time
from threading import Event

from serve.selection import Candidate, Choice, Shelf
from serve.text import tokens

# Found with benchmarks/evaluate.py's requests over 11,766 skills (140 requests, 18 of them without an answer). Of all
# combinations of the four, these choose for 27 % of the requests and are right in 84 % of the choices (the first row alone: 57 %),
# and choose for none of those without an answer. On 38 long tasks they choose for 66 % and are right each time. A likeness
# of meaning that is high by itself decides nothing: it is highest for very short requests, which many skills fit.
SEMANTIC_RANK = 5  # or better, by meaning
LEXICAL_RANK = 3  # or better, by words: the stronger sign of the two where the request is concrete
MARGIN = 0.02  # of a full score, to the second
SHARED = 2  # words of the request in the skill's name or description
OFFERED = 8


class RankSelector:
    """Chooses by agreement of the lanes. Keeps nothing running."""

    name = "rank"

    def choose(
        self, query: str, candidates: list[Candidate], shelf: Shelf, *, deadline: float, cancelled: Event
    ) -> Choice:
        """The first candidate, or the first few to choose from."""
        del shelf, deadline  # what the ranking says is enough, and it takes no time
        begun = time.perf_counter()
        doubt = "the request was cancelled" if cancelled.is_set() else doubts(query, candidates)
        spent = round((time.perf_counter() - begun) * 1000, 2)
        if cancelled.is_set():
            return Choice(selector=self.name, reason=doubt, failed=True, milliseconds=spent)
        if not doubt:
            reason = "first by meaning and by words, with a margin"
            return Choice(selector=self.name, id=candidates[0].id, reason=reason, milliseconds=spent)
        offered = tuple(candidates[:OFFERED])
        reason = f"{doubt}; call again with the exact id of one that fits" if offered else doubt
        return Choice(selector=self.name, reason=reason, offered=offered, milliseconds=spent)

    def close(self) -> None:
        """Nothing is kept running."""


def doubts(query: str, candidates: list[Candidate]) -> str:
    """Why the first candidate is not simply taken, "" when it is."""
    if not candidates:
        return "no skill was found"
    first = candidates[0]
    missing = [lane for lane in ("semantic", "lexical") if lane not in first.ranks]
    if missing:
        return f"the best candidate was not found by the {missing[0]} lane"
    if first.ranks["semantic"] > SEMANTIC_RANK or first.ranks["lexical"] > LEXICAL_RANK:
        return "meaning and words do not agree on one skill"
    if len(set(tokens(query)).intersection(tokens(f"{first.name}\n{first.description}"))) < SHARED:
        return "the best candidate's name and description hold too little of the request"
    if len(candidates) > 1 and first.score - candidates[1].score < MARGIN:
        return "two skills are equally near"
    return ""
