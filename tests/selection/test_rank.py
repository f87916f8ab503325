"""Choosing without a model: only what meaning and words agree on, and a short list of exact IDs otherwise."""

from __future__ import annotations

import time
from threading import Event

import msgspec
import pytest

from serve.selection.rank import RankSelector
from tests.selection.shelves import BookShelf


def choose(query, candidates, cancelled=None):
    stop = cancelled or Event()
    return RankSelector().choose(query, candidates, BookShelf(), deadline=time.monotonic() + 5, cancelled=stop)


def ranked(*rows):
    """Candidates of (name, description, score, rank by meaning, rank by words); a rank of 0 is none."""
    shelf = BookShelf()
    out = []
    for name, description, score, semantic, lexical in rows:
        shelf.add(f"lib:{name}", description, name=name)
        ranks = {lane: rank for lane, rank in (("semantic", semantic), ("lexical", lexical)) if rank}
        out.append(msgspec.structs.replace(shelf.candidate(f"lib:{name}"), score=score, ranks=ranks))
    return out


FIRST = ("csv-cleaning", "Clean messy CSV files with broken rows.", 1.05, 1, 1)
SECOND = ("sql-tuning", "Tune slow queries.", 0.95, 2, 2)


def test_what_meaning_and_words_agree_on_is_chosen():
    choice = choose("clean a messy csv", ranked(FIRST, SECOND))

    assert (choice.id, choice.failed, choice.offered, choice.selector) == ("lib:csv-cleaning", False, (), "rank")
    assert choice.reason


def test_an_only_candidate_is_chosen_on_the_same_terms():
    assert choose("clean a messy csv", ranked(FIRST)).id == "lib:csv-cleaning"
    assert choose("water the plants", ranked(FIRST)).id == ""


DOUBTS = {
    "two are equally near": (ranked(FIRST, (*SECOND[:2], 1.04, 2, 2)), "clean a messy csv", "equally near"),
    "words did not find it": (ranked((*FIRST[:3], 1, 0), SECOND), "clean a messy csv", "lexical lane"),
    "meaning did not find it": (ranked((*FIRST[:3], 0, 1), SECOND), "clean a messy csv", "semantic lane"),
    "words put it far down": (ranked((*FIRST[:3], 1, 4), SECOND), "clean a messy csv", "do not agree"),
    "meaning puts it far down": (ranked((*FIRST[:3], 6, 1), SECOND), "clean a messy csv", "do not agree"),
    "one word is shared": (ranked(FIRST, SECOND), "a csv of recipes for soup", "too little"),
    "no word is shared": (ranked(FIRST, SECOND), "sing me a lullaby", "too little"),
}


@pytest.mark.parametrize("what", DOUBTS)
def test_the_caller_chooses_when(what):
    candidates, query, reason = DOUBTS[what]

    choice = choose(query, candidates)

    assert (choice.id, choice.failed) == ("", False)
    assert choice.offered == tuple(candidates)
    assert reason in choice.reason
    assert choice.reason.endswith("call again with the exact id of one that fits")


def test_a_short_list_is_short():
    rows = [(f"skill-{at}", "Clean CSV.", 1.0, at, at) for at in range(1, 13)]

    assert len(choose("clean csv", ranked(*rows)).offered) == 8


def test_no_candidate_is_no_choice():
    choice = choose("clean a messy csv", [])

    assert (choice.id, choice.failed, choice.offered, choice.reason) == ("", False, (), "no skill was found")


def test_a_cancelled_choice_has_failed():
    stop = Event()
    stop.set()

    assert choose("clean a messy csv", ranked(FIRST), stop).failed


def test_closing_twice_is_nothing():
    selector = RankSelector()
    selector.close()
    selector.close()
