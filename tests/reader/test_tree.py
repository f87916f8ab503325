"""Loading YAML as texts: what is taken, what is refused."""

from __future__ import annotations

import pytest

from pipeline.reader.tree import MAX_ALIASES, MAX_DEPTH, MAX_NODES, MAX_TEXT, Plain, TreeError, load


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: 1.10\nb: yes\nc: 2024-01-31\n", {"a": "1.10", "b": "yes", "c": "2024-01-31"}),
        ("[~, null, '', 'null', no]", [None, None, "", "null", "no"]),
        ("a:\nb: ''\n", {"a": None, "b": ""}),
        ("? a\n: b\n", {"a": "b"}),
        ("{~: a}", {"": "a"}),
        ("a: !!str 1\nb: !!int 1\nc: !!null x\nd: !!binary aGk=\n", {"a": "1", "b": "1", "c": None, "d": "aGk="}),
        ("a: !!map {b: c}\nd: !!seq [e]\n", {"a": {"b": "c"}, "d": ["e"]}),
        ("a: &x [1]\nb: *x\n", {"a": ["1"], "b": ["1"]}),
        ("a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}\n", {"a": {"k": "1", "l": "2"}, "b": {"k": "1", "l": "3"}}),
        (
            "a: &x {k: 1}\nb: &y {k: 2, l: 2}\nc: {<<: [*x, *y]}\n",
            {"a": {"k": "1"}, "b": {"k": "2", "l": "2"}, "c": {"k": "1", "l": "2"}},
        ),
        ("a: 1\na: 2\n", {"a": "2"}),
    ],
)
def test_a_document_becomes_texts_lists_and_mappings(text: str, value: object) -> None:
    assert load(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "a: b: c",
        "a: [",
        "a: *x",
        "a: &x [*x]",
        "a: !b c",
        "a: !b [c]",
        "a: !!python/name:os.system ''",
        "{a: b}: c",
        "[a]: b",
        "{{a}}",
        "<<: a",
        "<<: [a]",
        "--- a\n--- b\n",
        "a: \x01",
        "x" * (MAX_TEXT + 1),
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "[" + "a, " * MAX_NODES + "a]",
        "[&x a" + ", *x" * (MAX_ALIASES + 1) + "]",
    ],
)
def test_what_is_no_plain_data_or_too_much_is_refused(text: str) -> None:
    with pytest.raises(TreeError):
        load(text)


def test_the_limits_themselves_are_allowed() -> None:
    assert load("[" * MAX_DEPTH + "]" * MAX_DEPTH).value is not None
    assert load("x" * MAX_TEXT).value == "x" * MAX_TEXT
    assert load("[&x a" + ", *x" * MAX_ALIASES + "]").value == ["a"] * (MAX_ALIASES + 1)


@pytest.mark.parametrize("text", ["no", "On", "2048", "0x1F", "1_000", "3.10", ".inf", "2024-01-31", "1:30"])
def test_a_plain_scalar_tells_whether_yaml_reads_it_as_something_else(text: str) -> None:
    value = load(f"a: {text}").value["a"]

    assert (value, type(value), value.is_text) == (text, Plain, False)


@pytest.mark.parametrize("text", ["nope", "1.2.3", "v2", "1.2.3-a", "a"])
def test_anything_else_is_text_and_so_is_all_that_is_quoted(text: str) -> None:
    assert load(f"a: {text}").value["a"].is_text
    assert type(load(f"a: '{text}'").value["a"]) is str


def test_places_point_at_top_level_values_and_duplicates_are_named() -> None:
    text = "é: x\na: folds # and more\nb: 'q'\na: &k last\n"
    tree = load(text)

    assert text[tree.places["a"].start : tree.places["a"].end].endswith("last")
    assert (tree.places["a"].anchor, tree.places["b"].plain) == ("k", False)
    assert tree.duplicates == ("a",)


def test_anchors_of_one_part_are_known_in_the_next() -> None:
    anchors: dict[str, object] = {}
    load("a: &x text", anchors)

    assert load("b: *x", anchors).value == {"b": "text"}
