"""Models that misbehave: each choice ends within its deadline, with a clear reason and nothing chosen."""

from __future__ import annotations

import json
import threading

import pytest

from tests.selection.conftest import until
from tests.selection.model_server import Flood, Raw, Silence, chooses

RIGHT = "lib:csv-cleaning"


def says(text):
    return lambda _turn, _request: text


def reads_then(text):
    turns = [[("catalog_search", {"query": "csv"})], [("catalog_read", {"id": RIGHT})], text]
    return lambda turn, _request: turns[min(turn, 2)]


def picks(skill_id):
    return json.dumps({"choice": skill_id, "reason": "because"})


# What goes wrong between a model and its host is tried with both; what goes wrong in the verdict alone, with the quicker one.
MISBEHAVIOUR = {
    "searches for ever": (lambda turn, _: [("catalog_search", {"query": f"csv {turn}"})], "more than 12 tool calls"),
    "calls forty tools in one turn": (
        lambda _turn, _: [("catalog_search", {"query": f"csv {at}"}) for at in range(40)],
        "more than 12 tool calls",
    ),
    "chooses what was found and not read": (
        lambda turn, _: [("catalog_search", {"query": "csv"})] if turn == 0 else picks(RIGHT),
        "without having read it",
    ),
    "chooses what nobody found": (
        lambda turn, _: [("catalog_read", {"id": "lib:made-up"})] if turn == 0 else picks("lib:made-up"),
        "no search had found: lib:made-up",
    ),
    "answers in prose": (says("I would take the CSV one."), "no JSON object: I would take the CSV one."),
    "answers with nothing": (says(""), "empty"),
    "answers with very much": (says(Flood(300_000)), "characters instead of a short JSON object"),
    "refuses the key": (says(Raw(401, {"error": {"message": "bad key"}})), "bad key"),
}
BAD_VERDICTS = {
    "of what was not read": (says(picks(RIGHT)), "without having read it"),
    "of what does not exist": (reads_then(picks("lib:made-up")), "no search had found: lib:made-up"),
    "of a path": (reads_then(picks("../../etc/passwd")), "no search had found"),
    "that is a list": (reads_then(json.dumps([RIGHT])), "no JSON object"),
    "that is two objects": (reads_then(picks(RIGHT) + picks("lib:sql-tuning")), "no JSON object"),
    "for two skills": (reads_then(json.dumps({"choice": [RIGHT, "lib:sql-tuning"]})), "neither an ID nor null"),
    "for an empty ID": (reads_then(picks(" ")), "neither an ID nor null"),
    "under another key": (reads_then(json.dumps({"selected_id": RIGHT})), "has no `choice`"),
    "that breaks off": (reads_then('{"choice": "lib:csv'), "no JSON object"),
    "that is very deep": (reads_then("[" * 15_000), "no JSON object"),
}


@pytest.mark.requirement("R031", "R032")
@pytest.mark.parametrize("what", MISBEHAVIOUR)
def test_a_model_that_misbehaves_chooses_nothing_and_the_reason_says_so(what, modelled):
    play, reason = MISBEHAVIOUR[what]
    chooser = modelled(play)

    choice = chooser.choose(seconds=60)

    assert (choice.id, choice.failed) == ("", True)
    assert reason in choice.reason
    assert chooser.seconds < 60


@pytest.mark.requirement("R031", "R032")
@pytest.mark.parametrize("what", BAD_VERDICTS)
def test_nothing_is_chosen_by_a_verdict(what, endpoint):
    play, reason = BAD_VERDICTS[what]

    choice = endpoint(play).choose()

    assert (choice.id, choice.failed) == ("", True)
    assert reason in choice.reason


LATENESS = {
    "is silent": says(Silence),
    "fails with 500 every time": says(Raw(500, {"error": {"message": "overloaded"}})),
    "asks to wait": says(Raw(429, {"error": {"message": "slow down"}}, {"retry-after": "30"})),
    "falls silent after a search": lambda turn, _: Silence if turn else [("catalog_search", {"query": "csv"})],
}


@pytest.mark.parametrize("what", LATENESS)
def test_a_model_that_is_late_has_chosen_nothing_at_the_deadline(what, modelled):
    chooser = modelled(LATENESS[what])

    choice = chooser.choose(seconds=chooser.patience)

    assert (choice.id, choice.failed) == ("", True)
    assert f"no decision within {chooser.patience:g} s" in choice.reason or "does not answer: HTTP" in choice.reason
    assert chooser.seconds < chooser.patience + 0.5


def test_the_calls_beyond_the_limit_are_refused_and_the_model_may_still_decide(modelled):
    def play(turn, _request):
        if turn < 13:
            return [("catalog_read", {"id": RIGHT})]
        return picks(RIGHT)

    chooser = modelled(play)

    choice = chooser.choose()

    assert choice.id == RIGHT
    assert choice.tool_calls == 13
    assert "No tool call is left" in chooser.server.messages("tool")[-1]


@pytest.mark.requirement("R028")
def test_a_tool_that_does_not_exist_does_nothing_and_the_model_may_go_on(modelled):
    steps = [[("bash", {"command": "touch here"})], [("catalog_read", {"id": RIGHT})], picks(RIGHT)]
    chooser = modelled(lambda turn, _request: steps[turn])

    choice = chooser.choose()

    assert choice.id == RIGHT
    assert "bash" in chooser.server.messages("tool")[0] or "no such tool" in chooser.server.messages("tool")[0]


def test_a_model_that_chooses_none_has_decided(modelled):
    chooser = modelled(reads_then(json.dumps({"choice": None, "reason": "nothing is about boats"})))

    choice = chooser.choose()

    assert (choice.id, choice.failed, choice.offered) == ("", False, ())
    assert choice.reason == "nothing is about boats"
    assert choice.considered == (RIGHT,)


def test_a_skill_of_the_first_list_can_be_chosen_without_a_search(modelled):
    chooser = modelled(lambda turn, _: picks(RIGHT) if turn else [("catalog_read", {"id": RIGHT})])

    assert chooser.choose().id == RIGHT
    assert chooser.shelf.searched == []


def test_a_code_fence_around_the_verdict_is_passed_over(modelled):
    chooser = modelled(reads_then(f"Here it is:\n\n```json\n{picks(RIGHT)}\n```\n"))

    assert chooser.choose().id == RIGHT


def test_two_calls_of_one_turn_are_both_answered(modelled):
    both = [("catalog_search", {"query": "csv"}), ("catalog_read", {"id": RIGHT})]
    chooser = modelled(lambda turn, _: picks(RIGHT) if turn else both)

    choice = chooser.choose()

    assert (choice.id, choice.tool_calls) == (RIGHT, 2)


def test_a_failed_choice_names_the_candidates_so_that_the_caller_can_go_on(modelled):
    choice = modelled(says("no idea")).choose()

    assert [item.id for item in choice.offered] == ["lib:csv-cleaning", "lib:sql-tuning", "lib:pod-audit"]


def test_a_cancelled_choice_ends_at_once(modelled):
    chooser = modelled(says(Silence))
    choices = []
    thread = threading.Thread(target=lambda: choices.append(chooser.choose(seconds=60)))
    thread.start()
    assert chooser.server.arrived.wait(50)

    chooser.cancelled.set()
    thread.join(2)

    assert not thread.is_alive()
    assert choices[0].reason.startswith("the request was cancelled")
    assert choices[0].failed


def test_a_shelf_that_hangs_does_not_hold_the_choice(endpoint):
    chooser = endpoint(chooses(RIGHT))
    chooser.shelf.hold.clear()

    choice = chooser.choose(seconds=2)
    chooser.shelf.hold.set()

    assert choice.failed
    assert choice.reason == "no decision within 2 s (after 1 tool calls)"
    assert chooser.seconds < 2.5


def test_choices_at_the_same_time_do_not_mix(modelled):
    """Each model answers for the task that it was given, whatever the others do meanwhile."""
    ids = {"first": RIGHT, "second": "lib:sql-tuning", "third": "lib:pod-audit"}

    def play(turn, request):
        text = json.dumps(request["messages"])
        skill_id = next(skill_id for word, skill_id in ids.items() if f"the {word} task" in text)
        return picks(skill_id) if turn else [("catalog_read", {"id": skill_id})]

    chooser = modelled(play)
    found = {}
    threads = [
        threading.Thread(target=lambda word=word: found.update({word: chooser.choose(f"the {word} task")}))
        for word in ids
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {word: choice.id for word, choice in found.items()} == ids


def test_a_closed_selector_ends_the_choice_it_is_making(modelled):
    chooser = modelled(says(Silence))
    choices = []
    thread = threading.Thread(target=lambda: choices.append(chooser.choose(seconds=60)))
    thread.start()
    assert chooser.server.arrived.wait(50)

    chooser.selector.close()
    chooser.selector.close()
    thread.join(5)

    assert choices[0].reason == "the selector was closed"
    until(lambda: not thread.is_alive())
