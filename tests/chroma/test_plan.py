"""The plan: the difference between wanted and held, as laws."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.chroma import plan

ids = st.text(st.characters(codec=None), max_size=3)
contents = st.dictionaries(ids, st.sampled_from("abc"), max_size=12)


def applied(todo, wanted, held):
    kept = {key: digest for key, digest in held.items() if key not in todo.drop}
    return kept | {key: wanted[key] for key in todo.put}


@given(contents, contents)
def test_carrying_out_the_plan_gives_what_is_wanted(wanted, held):
    assert applied(plan(wanted, held), wanted, held) == wanted


@given(contents)
def test_what_is_held_already_needs_nothing(wanted):
    assert not plan(wanted, wanted)


@given(contents, contents)
def test_no_row_is_touched_without_need(wanted, held):
    todo = plan(wanted, held)
    assert all(held.get(key) != wanted[key] for key in todo.put)
    assert set(todo.drop) == held.keys() - wanted.keys()
    assert bool(todo) == (wanted != held)


@given(contents, contents)
def test_the_plan_is_sorted_and_does_not_depend_on_the_order_of_rows(wanted, held):
    todo = plan(wanted, held)
    assert list(todo.put) == sorted(set(todo.put))
    assert list(todo.drop) == sorted(set(todo.drop))
    assert plan(dict(reversed(wanted.items())), dict(reversed(held.items()))) == todo
