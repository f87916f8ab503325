"""The scout that stands by: used once, replaced, replaced as well when it dies or its models change, and ended."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from serve.selection.limits import Limits
from serve.selection.standby import Standby
from serve.settings import ScoutSettings
from tests.selection.conftest import Chooser, scouts, until
from tests.selection.model_server import Silence, chooses

pytestmark = pytest.mark.long  # every test starts OMP, which takes seconds
RIGHT = "lib:csv-cleaning"


@pytest.fixture
def standing(omp_selector, serve_model, shelf):
    """Makes a chooser with a scout that stands by already."""

    def make(play=None, **settings):
        server = serve_model(play or chooses(RIGHT))
        chooser = Chooser(omp_selector(server, standby=True, **settings), shelf, server)
        chooser.selector.warm()
        ready(chooser)
        return chooser

    return make


def ready(chooser):
    """The ID of the process that stands by."""
    standby = chooser.selector._standby
    start = until(lambda: standby._next)
    until(start.done.is_set)
    return start.process.pid if start.process else None


def test_each_process_makes_one_choice_and_is_ended(standing, private):
    chooser = standing()
    first = ready(chooser)

    assert chooser.choose("the first secret task").id == RIGHT
    second = ready(chooser)
    assert chooser.choose("another task").id == RIGHT
    third = ready(chooser)

    assert len({first, second, third}) == 3
    until(lambda: scouts(private) == [third])
    assert "the first secret task" not in str(chooser.server.requests[3:])


def test_a_scout_that_died_while_it_stood_by_is_replaced(standing):
    chooser = standing()
    os.kill(ready(chooser), signal.SIGKILL)
    until(lambda: not chooser.selector._standby._next.process.alive)

    assert chooser.choose().id == RIGHT


def test_a_scout_that_dies_just_when_it_is_needed_is_replaced(standing, private):
    """It stands still, so it counts as living, and ends when it is given its task."""
    chooser = standing()
    pid = ready(chooser)
    os.kill(pid, signal.SIGSTOP)
    killer = threading.Timer(0.3, lambda: os.kill(pid, signal.SIGKILL))
    killer.start()

    choice = chooser.choose()
    killer.join()

    assert choice.id == RIGHT
    until(lambda: pid not in scouts(private))


def test_a_scout_that_dies_at_work_is_not_replaced(standing, private):
    chooser = standing(lambda turn, _: Silence if turn else [("catalog_search", {"query": "csv"})])
    pid = ready(chooser)
    choices = []
    thread = threading.Thread(target=lambda: choices.append(chooser.choose(seconds=60)))
    thread.start()
    until(lambda: len(chooser.server.requests) == 2)
    os.kill(pid, signal.SIGKILL)
    thread.join(10)

    assert choices[0].failed
    assert len(chooser.server.requests) == 2


def test_two_choices_at_once_have_two_processes(standing):
    chooser = standing()
    choices = []
    threads = [threading.Thread(target=lambda: choices.append(chooser.choose())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [choice.id for choice in choices] == [RIGHT, RIGHT]


def test_a_changed_models_file_replaces_the_scout(omp_selector, serve_model, shelf, tmp_path):
    old, new = serve_model(chooses(RIGHT)), serve_model(chooses(RIGHT))
    file = tmp_path / "models.yml"

    def write(server):
        models = "models: [{id: scout, name: scout, contextWindow: 128000, maxTokens: 4096}]"
        file.write_text(
            f"providers:\n  mine: {{baseUrl: '{server.url}', auth: none, api: openai-completions, {models}}}\n",
            encoding="utf-8",
        )

    write(old)
    chooser = Chooser(omp_selector(None, standby=True, models_file=file, model="mine/scout"), shelf)
    chooser.selector.warm()
    ready(chooser)
    write(new)

    assert chooser.choose().id == RIGHT
    assert (len(old.requests), len(new.requests)) == (0, 3)


def test_closing_ends_a_scout_that_stands_by_or_is_being_started(standing, private):
    chooser = standing()
    chooser.selector.close()
    assert scouts(private) == []

    other = standing()
    other.choose()
    other.selector.close()
    assert scouts(private) == []
    assert other.choose().reason == "the selector was closed"


def test_a_scout_is_waited_for_while_it_is_being_started(omp_selector, serve_model, shelf):
    server = serve_model(chooses(RIGHT))
    chooser = Chooser(omp_selector(server, standby=True), shelf, server)
    chooser.selector.warm()
    start = chooser.selector._standby._next

    assert chooser.choose().id == RIGHT
    assert start.done.is_set()


def test_a_program_that_is_missing_leaves_nothing_standing_by(omp_selector, serve_model, shelf):
    server = serve_model(chooses(RIGHT))
    chooser = Chooser(omp_selector(server, standby=True, omp_command="no-such-program"), shelf)
    chooser.selector.warm()

    assert "no program `no-such-program`" in chooser.choose().reason
    assert ready(chooser) is None


def test_a_scout_that_stands_by_too_long_is_ended(omp, private, serve_model):
    ended = []

    def end(process):
        process.end()
        ended.append(process.pid)

    settings = ScoutSettings(url=serve_model(chooses(RIGHT)).url, model="scout", omp_command=str(omp))
    standby = Standby(settings, threading.Event(), end, idle=0.2)
    standby.refill()

    until(lambda: ended)
    assert scouts(private) == []
    assert standby.take(Limits(time.monotonic() + 5)) is None
