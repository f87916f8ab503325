"""The lane of IWE over a program that misbehaves: nothing it does costs more than the budget, and each fault has its reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from serve.lanes.iwe import IweLane
from serve.lanes.iwec_protocol import Patience, Tool
from tests.lanes.conftest import PATIENT, Odd, answered, current, ids, until
from tests.world import World

pytestmark = pytest.mark.long

Lanes = Callable[..., IweLane]


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("garbage", "IWE wrote something that is no JSON object"),
        ("list", "IWE wrote something that is no JSON object"),
        ("endless", "IWE wrote a line of more than 16 MiB"),
        ("exits", "IWE ended with code 3: Error: no  [31mconfiguration"),
        ("refuses", "IWE refuses to begin: {'code': 1, 'message': 'not today'}"),
    ],
)
def test_a_program_that_does_not_begin_is_started_again_and_again(
    mode: str, reason: str, built: World, odd: Odd, lanes: Lanes
) -> None:
    lane = lanes(built.data / "catalog", odd.plan(mode))
    snapshot = current(built)

    until(lambda: lane.hits("x", 5, snapshot).reason == reason)
    until(lambda: lane.status()["starts"] >= 3)

    assert lane.status()["running"] is False


def test_it_recovers_when_the_program_does(built: World, odd: Odd, lanes: Lanes) -> None:
    snapshot = current(built)
    known = _key(built, "main:pod-audit")
    lane = lanes(built.data / "catalog", odd.plan("garbage", "exits", "ends", "well", keys=(known,)))

    assert ids(answered(lane, "x", snapshot), snapshot) == ["main:pod-audit"]
    assert lane.status()["starts"] == 4


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("other", "IWE gave an answer of another form"),
        ("failing", "IWE says: no such thing"),
        ("ends", "IWE ended with code 0"),
    ],
)
def test_an_answer_that_is_none_has_its_reason(mode: str, reason: str, built: World, odd: Odd, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", odd.plan(mode))
    until(lambda: lane.status()["running"])

    found = lane.hits("x", 5, current(built))

    assert (found.hits, found.reason) == (None, reason)
    assert lane.neighbours("main:pod-audit", 5) == []


def test_an_answer_that_says_it_failed_is_no_result(built: World, odd: Odd, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", odd.plan("flagged", keys=("skills/a/b-1",)))
    until(lambda: lane.status()["running"])

    assert lane.hits("x", 5, current(built)).reason.startswith("IWE says: [{")


def test_requests_and_notices_of_the_program_disturb_nothing(built: World, odd: Odd, lanes: Lanes) -> None:
    snapshot = current(built)
    lane = lanes(built.data / "catalog", odd.plan("chatty", keys=(_key(built, "main:pod-audit"),)))

    assert ids(answered(lane, "x", snapshot), snapshot) == ["main:pod-audit"]
    assert ids(answered(lane, "y", snapshot), snapshot) == ["main:pod-audit"]
    until(lambda: {"jsonrpc": "2.0", "id": 77, "result": {}} in odd.received)


def test_a_program_that_says_nothing_is_late_once_and_then_left_alone(built: World, odd: Odd, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", odd.plan("mute"), budget=0.02)
    until(lambda: lane.status()["running"])
    snapshot = current(built)

    reasons = [lane.hits("x", 5, snapshot).reason for _ask in range(5)]

    assert reasons == ["no answer within 20 ms", *["IWE is still busy with an earlier query"] * 4]


def test_a_program_that_never_begins_is_replaced(built: World, odd: Odd, lanes: Lanes) -> None:
    patience = PATIENT._replace(starting=1.0)
    lane = lanes(built.data / "catalog", odd.plan("silent", "well"), patience=patience)
    snapshot = current(built)

    until(lambda: lane.hits("x", 5, snapshot).reason.startswith("IWE was not ready after"))
    answered(lane, "x", snapshot)

    assert lane.status()["starts"] == 2


def test_a_late_answer_goes_to_nobody_and_the_next_is_not_asked_for_a_while(
    built: World, odd: Odd, lanes: Lanes
) -> None:
    lane = lanes(built.data / "catalog", odd.plan("slow", keys=(_key(built, "main:pod-audit"),)), budget=0.02)
    until(lambda: lane.status()["running"])
    snapshot = current(built)

    assert lane.hits("first", 5, snapshot).reason == "no answer within 20 ms"
    lane.neighbours("main:pod-audit", 5)  # another kind of question, upon which both are answered
    until(lambda: lane.status()["late"].get("search"))

    assert lane.hits("second", 5, snapshot).reason.endswith("it is asked again in 10.0 s")
    searches = [
        sent["params"]["arguments"]["lexical"] for sent in _calls(odd) if "lexical" in sent["params"]["arguments"]
    ]
    assert searches == ["first"]


def test_cards_that_no_snapshot_has_are_passed_over(built: World, odd: Odd, lanes: Lanes) -> None:
    known = _key(built, "main:pod-audit")
    digest = known[-16:]
    keys = (
        "index",
        "sources/main",
        f"skills/other/pod-audit-{digest}",
        "skills/main/gone-0123456789abcdef",
        "",
        known,
        "7",
    )
    snapshot = current(built)
    lane = lanes(built.data / "catalog", odd.plan("well", keys=keys))

    assert ids(answered(lane, "x", snapshot), snapshot) == ["main:pod-audit"]


def test_too_few_cards_start_it_anew_once_a_generation(built: World, odd: Odd, lanes: Lanes) -> None:
    snapshot = current(built)
    lane = lanes(built.data / "catalog", odd.plan("well", counts=(3, 2, len(snapshot))))

    def restarted() -> bool:
        lane.hits("x", 5, snapshot)
        return lane.status()["starts"] == 2 and bool(lane.status()["running"])

    until(restarted)
    for _ask in range(5):
        answered(lane, "x", snapshot)

    assert lane.status()["starts"] == 2


def test_only_reading_tools_are_asked_for(built: World, odd: Odd, lanes: Lanes) -> None:
    snapshot = current(built)
    lane = lanes(built.data / "catalog", odd.plan("well", keys=(_key(built, "main:pod-audit"),)))
    answered(lane, "iwe_delete", snapshot)
    lane.neighbours("main:pod-audit", 5)
    until(lambda: len({sent["params"]["name"] for sent in _calls(odd)}) == 2)

    assert {sent["params"]["name"] for sent in _calls(odd)} == {"iwe_find", "iwe_retrieve"} == {*Tool}
    assert {sent["method"] for sent in odd.received} == {"initialize", "notifications/initialized", "tools/call"}


def test_it_is_told_no_more_of_the_environment_than_it_needs(
    built: World, odd: Odd, lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("RETRIEVAL_EMBEDDING_API_KEY", "secret")
    lane = lanes(built.data / "catalog", odd.plan("well"))
    until(lambda: lane.status()["running"])

    kept = {"PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT"}
    assert odd.environments[0].keys() - {"LC_CTYPE", "PWD", "SHLVL", "_"} <= kept


def test_without_the_program_the_lane_says_so(built: World, tmp_path: Path, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", tmp_path / "nothing")
    snapshot = current(built)

    until(lambda: lane.hits("x", 5, snapshot).reason == f"{tmp_path / 'nothing'} is no program")
    assert lane.neighbours("main:pod-audit", 5) == []


def test_a_file_that_cannot_be_run_is_no_crash(built: World, tmp_path: Path, lanes: Lanes) -> None:
    program = tmp_path / "iwec"
    program.write_bytes(b"\x7fELF nothing")
    program.chmod(0o755)
    lane = lanes(built.data / "catalog", program)
    snapshot = current(built)

    until(lambda: lane.hits("x", 5, snapshot).reason.startswith("IWE could not be started: "))


def test_switched_off_it_starts_nothing(built: World, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", "off")

    assert lane.hits("x", 5, current(built)).reason == "switched off"
    assert lane.neighbours("main:pod-audit", 5) == []
    assert lane.status() == {"running": False, "reason": "switched off"}


def test_before_it_is_started_it_says_so(built: World) -> None:
    assert IweLane(built.data / "catalog", "iwec").hits("x", 5, current(built)).reason == "not started"


def test_pauses_between_starts_grow(built: World, odd: Odd, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", odd.plan("exits"), patience=Patience(first_pause=0.01, longest_pause=3600))
    until(lambda: lane.status()["starts"] >= 4)

    assert lane.status()["running"] is False


def _key(world: World, skill: str) -> str:
    from serve.cards import card_key

    assert skill in current(world).ids
    return card_key(skill)


def _calls(odd: Odd) -> list[dict]:
    return [sent for sent in odd.received if sent["method"] == "tools/call"]
