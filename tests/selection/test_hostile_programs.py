"""Programs in OMP's place that misbehave as processes: refused, bounded, ended, with nothing chosen."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.selection.conftest import Chooser, scouts

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).with_name("scripted_program.py")


@pytest.fixture
def omp(tmp_path):
    """No OMP is needed here."""
    return tmp_path / "omp"


@pytest.fixture
def program(omp_selector, shelf, tmp_path):
    """Makes a chooser over the program that plays a scenario."""

    def make(scenario, **settings):
        path = tmp_path / "scripted"
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {PROGRAM} {shlex.quote(scenario)} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
        given = {"omp_command": str(path), "url": "http://127.0.0.1:9/v1", **settings}
        return Chooser(omp_selector(None, **given), shelf)

    return make


REFUSED = {
    "dies at once": "OMP ended with status 3",
    "wordy death": "at the end: no memory",
    "another greeting": "OMP ended with status 0",
    "one tool more": "other tools than the scout's two: bash",
    "one tool less": "other tools than the scout's two: fewer",
    "one tool twice": "other tools than the scout's two",
    "no tools told": "other tools than the scout's two",
    "a session on disk": "empty session",
    "an old session": "empty session",
    "another prompt": "something else into the scout's instructions",
    "more prompt": "something else into the scout's instructions",
    "flood": "frames of more than",
    "stray lines": "lines came that are no frames",
    "an endless line": "a line of more than",
    "a failed turn": "the model failed: the provider is down",
    "refuses the task": "did not take the task: no model key",
    "takes it for a command": "a command of its own",
    "dies over the task": "OMP ended with status 9",
    "dies in a call": "OMP ended with status 9",
    "chunks too long": "more than was announced",
    "chunks too short": "less than was announced",
    "chunks swapped": "out of order",
    "chunks without a first": "out of order",
    "chunks of too much": "bytes was announced",
}


@pytest.mark.requirement("R125")
@pytest.mark.parametrize("scenario", REFUSED)
def test_a_program_that_misbehaves_has_chosen_nothing(scenario, program):
    chooser = program(scenario)

    choice = chooser.choose(seconds=20)

    assert (choice.id, choice.failed) == ("", True)
    assert REFUSED[scenario] in choice.reason
    assert len(choice.reason) < 500
    assert choice.reason.isprintable()
    assert chooser.seconds < 20


@pytest.mark.parametrize("scenario", ["silent", "immortal", "greets in prose", "deaf"])
def test_a_program_that_holds_its_host_is_given_up_at_the_deadline_and_killed(scenario, program, private):
    chooser = program(scenario)
    chooser.shelf.add("lib:csv-cleaning", "Clean messy CSV files.", "a" * 12_000)  # a few pages fill a pipe

    choice = chooser.choose(seconds=1)
    chooser.selector.close()

    assert choice.failed
    assert choice.reason.startswith("no decision within 1 s")
    assert chooser.seconds < 1.5
    assert scouts(private) == []


ENDURED = {
    "a stray line": "none",
    "updates": "none",
    "a dialogue": "cancelled True u1",
    "goes on": "now",
    "a compacted end": "from message_end",
    "chunks": "none",
}


@pytest.mark.parametrize("scenario", ENDURED)
def test_what_the_protocol_allows_is_taken(scenario, program):
    choice = program(scenario).choose(seconds=20)

    assert (choice.failed, choice.reason) == (False, ENDURED[scenario])


def test_what_a_program_has_started_ends_with_it(program, private):
    chooser = program("with a child")

    choice = chooser.choose()
    chooser.selector.close()

    assert choice.reason == "none"
    assert scouts(private) == []


def test_many_updates_take_no_memory(program):
    chooser = program("updates")
    before = peak_memory()

    assert not chooser.choose(seconds=20).failed

    assert peak_memory() - before < 40_000, "100 MB came, in kilobytes"


def test_a_program_that_is_missing_is_named(program):
    chooser = program("silent", omp_command="no-such-program-here")

    choice = chooser.choose()

    assert choice.reason == "OMP was not found: there is no program `no-such-program-here`"


def test_a_program_that_cannot_run_is_named(program, tmp_path):
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)

    choice = program("silent", omp_command=str(broken)).choose()

    assert choice.reason.startswith("OMP cannot be started: ")
    assert str(broken) in choice.reason


def test_a_choice_without_any_time_fails(program):
    choice = program("silent").choose(seconds=0)

    assert choice.failed
    assert choice.reason.startswith("no decision within 0 s")


def peak_memory():
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def test_the_host_closes_what_it_opened_for_a_program(program):
    chooser = program("chunks")
    chooser.choose()
    chooser.selector.close()
    before = len(os.listdir("/proc/self/fd"))

    again = program("chunks")
    again.choose()
    again.selector.close()

    assert len(os.listdir("/proc/self/fd")) == before
