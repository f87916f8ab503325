"""Where each key of a TOML document stands."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.toml_lines import Address, line_numbers

DOCUMENT = '''\
# a comment with [brackets] and "quotes"
title = "one"   # = not a key

[[sources]]
name = 'first'
include = [
  "a/**",   # ]
  "b]c",
]

[[sources]]
  "name" = """
[[sources]]
name = "inside a text"
\\""" still inside
"""
path = \'\'\'two
lines\'\'\'
exclude = ["x"]

  [sources.more]
  deep = { a = 1, b = [ { c = 2 }, { c = 3 } ] }

[policy]
a.b . "c d" = true
a.e = 1979-05-27T07:32:00Z
'''


def test_each_key_has_its_line() -> None:
    lines = line_numbers(DOCUMENT)

    assert lines == {
        ("title",): 2,
        ("sources", 0): 4,
        ("sources", 0, "name"): 5,
        ("sources", 0, "include"): 6,
        ("sources", 0, "include", 0): 7,
        ("sources", 0, "include", 1): 8,
        ("sources", 1): 11,
        ("sources", 1, "name"): 12,
        ("sources", 1, "path"): 17,
        ("sources", 1, "exclude"): 19,
        ("sources", 1, "exclude", 0): 19,
        ("sources", 1, "more"): 21,
        ("sources", 1, "more", "deep"): 22,
        ("sources", 1, "more", "deep", "a"): 22,
        ("sources", 1, "more", "deep", "b"): 22,
        ("sources", 1, "more", "deep", "b", 0): 22,
        ("sources", 1, "more", "deep", "b", 0, "c"): 22,
        ("sources", 1, "more", "deep", "b", 1): 22,
        ("sources", 1, "more", "deep", "b", 1, "c"): 22,
        ("policy",): 24,
        ("policy", "a"): 25,
        ("policy", "a", "b"): 25,
        ("policy", "a", "b", "c d"): 25,
        ("policy", "a", "e"): 26,
    }


def test_the_document_above_is_toml() -> None:
    assert addresses(tomllib.loads(DOCUMENT)) == set(line_numbers(DOCUMENT))


def test_an_array_of_inline_tables_over_several_lines_is_followed() -> None:
    text = 'sources = [\n  { name = "a" },\n\n  { name = "b",  path = "x" },\n]\n'

    assert line_numbers(text)[("sources", 1, "path")] == 4


@pytest.mark.parametrize("quotes", ['"' * n for n in (6, 7, 8)] + ["'" * n for n in (6, 7, 8)])
def test_quotes_at_the_end_of_a_long_text_belong_to_it(quotes: str) -> None:
    text = f"a = {quotes}\nb = 2\n"

    assert tomllib.loads(text)["b"] == 2
    assert line_numbers(text) == {("a",): 1, ("b",): 2}


@pytest.mark.parametrize(
    "text", ["[", "[[", "a", "a =", "= 1", "a = [", 'a = "', "]", "a = {", "[a]]\n[b", "\0", "a = '''"]
)
def test_a_broken_document_ends_without_an_error(text: str) -> None:
    lines = line_numbers("good = 1\n" + text)

    assert lines.pop(("good",)) == 1
    assert all(2 <= line <= text.count("\n") + 2 for line in lines.values())


def test_deep_arrays_are_walked_without_addresses_below_the_eighth_level() -> None:
    text = "a = " + "[" * 60 + "1" + "]" * 60 + "\nb = 2\n"
    lines = line_numbers(text)

    assert lines[("b",)] == 2
    assert max(map(len, lines)) == 9


def addresses(value: Any, at: Address = ()) -> set[Address]:
    """Every key, table and element of a parsed document; the array that `[[headers]]` make has no line of its own."""
    found: set[Address] = set()
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        tables = isinstance(inner, list) and inner and all(isinstance(item, dict) for item in inner)
        if not (tables and at == () and key == "sources"):
            found.add((*at, key))
        found |= addresses(inner, (*at, key))
    return found


SCALARS = st.one_of(
    st.booleans(), st.integers(-5, 5), st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)
)
KEYS = st.text("abc.[]=#'", min_size=1, max_size=4)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=6)
NOISE = st.sampled_from(["", "\n", "  # [x] = 'y'\n", "\t\n\n"])


def written(value: Any, noise: str) -> str:
    """A value as TOML; JSON's texts and numbers are TOML's too."""
    if isinstance(value, list):
        return "[" + noise + ("," + noise).join(written(item, noise) for item in value) + noise + "]"
    return json.dumps(value)


@given(st.lists(st.tuples(st.dictionaries(KEYS, VALUES, max_size=4), NOISE), max_size=4))
def test_lines_are_exact_for_any_document(tables: list[tuple[dict[str, Any], str]]) -> None:
    text, expected = "", {}
    for number, (table, noise) in enumerate(tables):
        text += noise
        expected[("sources", number)] = text.count("\n") + 1
        text += "[[ sources ]]\n"
        for key, value in table.items():
            text += noise
            expected[("sources", number, key)] = text.count("\n") + 1
            text += f"{json.dumps(key)} = {written(value, noise)}\n"

    lines = line_numbers(text)

    assert addresses(tomllib.loads(text)) == set(lines)
    assert {address: lines[address] for address in expected} == expected


@given(st.text("[]{}=\"'\\#\n.,ab 1", max_size=60))
def test_no_text_makes_it_fail_or_hang(text: str) -> None:
    lines = line_numbers(text)

    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
