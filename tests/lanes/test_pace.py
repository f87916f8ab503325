"""How long a helper that was late is left alone."""

from __future__ import annotations

import pytest

from serve.lanes.pace import FIRST_REST, LONGEST_REST, Pace


def late(pace: Pace, now: float, took: float) -> None:
    pace.given_up()
    pace.answered(now, took, in_time=False)


def test_who_was_in_time_is_asked_at_once() -> None:
    pace = Pace()
    pace.answered(100.0, 0.01, in_time=True)

    assert pace.rest(100.0) == 0.0
    assert pace.overdue == 0


def test_a_question_that_was_given_up_is_owed_until_it_is_answered() -> None:
    pace = Pace()
    pace.given_up()
    assert pace.overdue == 1

    pace.answered(100.0, 0.1, in_time=False)
    assert pace.overdue == 0


@pytest.mark.parametrize(("took", "rest"), [(0.05, FIRST_REST), (3.0, 60.0), (900.0, LONGEST_REST)])
def test_the_rest_is_long_against_the_work(took: float, rest: float) -> None:
    pace = Pace()
    late(pace, 100.0, took)

    assert pace.rest(100.0) == rest
    assert pace.rest(100.0 + rest) == 0.0


def test_rests_double_up_to_an_hour_and_one_answer_in_time_ends_them() -> None:
    pace = Pace()
    rests = []
    for _time in range(12):
        late(pace, 0.0, 3.0)
        rests.append(pace.rest(0.0))
    assert rests[:4] == [60.0, 120.0, 240.0, 480.0]
    assert rests[-1] == LONGEST_REST

    pace.answered(0.0, 0.01, in_time=True)
    late(pace, 0.0, 3.0)
    assert pace.rest(0.0) == 60.0


def test_a_helper_that_was_started_anew_owes_nothing() -> None:
    pace = Pace()
    pace.given_up()
    pace.forget()

    assert pace.overdue == 0
