"""The vocabulary and the overrides: what they mean, and one clear error for each way of getting them wrong."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ConfigError
from pipeline.taxonomy import NOTHING, Overrides, Taxonomy, load_overrides, load_taxonomy

PLAIN = """\
version = 1

[[categories]]
id = "cloud-security"
label = "Cloud security"
keywords = ["cloud security", "CSPM"]

[[categories]]
id = "data"
label = "Data"
keywords = ["data analysis"]
hints = ["data"]
"""

# The same vocabulary in another order and spelling.
OTHER = """\
# The categories.
version = 1
categories = [
    { label = "Data", hints = "DATA", keywords = ["data_analysis", "Data-Analysis"], id = "data" }, # both the same
    { id = "cloud-security", label = " Cloud  security ", keywords = ["cspm", "Cloud-Security"] },
]
"""


def taxonomy(text: str = PLAIN) -> Taxonomy:
    return load_taxonomy(text, "taxonomy.toml")


def table(*lines: str) -> str:
    return "\n".join(["version = 1", "", "[[categories]]", *lines, ""])


def test_a_taxonomy_is_its_categories_sorted_by_id() -> None:
    categories = taxonomy().categories

    assert [category.id for category in categories] == ["cloud-security", "data"]
    assert categories[0].keywords == ("cloud security", "cspm")
    assert categories[1].hints == ("data",)
    assert taxonomy().labels == {"cloud-security": "Cloud security", "data": "Data"}


def test_the_digest_is_of_the_meaning() -> None:
    assert taxonomy(OTHER).digest == taxonomy(PLAIN).digest
    assert taxonomy("\ufeff" + PLAIN.replace("\n", "\r\n")).digest == taxonomy(PLAIN).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"CSPM"', '"CSPM", "cnapp"'),
        ('"Data"', '"Data and analytics"'),
        ('hints = ["data"]', ""),
        ('id = "data"', 'id = "analytics"'),
        ('"data analysis"', '"analysis", "data science"'),
    ],
)
def test_the_digest_changes_with_the_meaning(old: str, new: str) -> None:
    assert old in PLAIN
    assert taxonomy(PLAIN.replace(old, new)).digest != taxonomy(PLAIN).digest


@pytest.mark.parametrize(
    ("text", "line", "what", "next_step"),
    [
        pytest.param("version = 1\nx = = 2\n", 2, "not valid TOML", "correct that line", id="syntax"),
        pytest.param('version = 1\nx = "open', 2, "not valid TOML", "correct that line", id="unclosed text"),
        pytest.param(PLAIN.replace("version = 1", ""), 1, "no version", "version = 1", id="no version"),
        pytest.param(
            PLAIN.replace("version = 1", "version = 2"), 1, "unknown taxonomy version 2", "version = 1", id="version"
        ),
        pytest.param(
            PLAIN.replace("version = 1", "version = true"),
            1,
            "version True",
            "version = 1",
            id="version of another type",
        ),
        pytest.param("version = 1\n", 1, "no categories", "[[categories]]", id="no categories"),
        pytest.param(
            "version = 1\n\n[categories]\nid = 'x'\n", 3, "no categories", "two pairs", id="one pair of brackets"
        ),
        pytest.param(
            "version = 1\ncategory = []\n", 2, 'unknown key "category"', '"categories"', id="unknown key above"
        ),
        pytest.param(PLAIN + 'keyword = ["x"]\n', 13, 'unknown key "keyword"', '"keywords"', id="unknown key"),
        pytest.param(
            PLAIN + "colour = 1\n", 13, 'unknown key "colour"', "known are id, label", id="unknown key, nothing near"
        ),
        pytest.param(
            PLAIN.replace('"data"\n', '"cloud-security"\n'), 9, "the other on line 4", "rename", id="duplicate"
        ),
        pytest.param(table("label = 'X'", "keywords = 'x'"), 3, "has no id", "single hyphens", id="no id"),
        pytest.param(
            table("id = 'Big Data'"), 4, '"Big Data" cannot be the id', 'like "big-data"', id="shape of an id"
        ),
        pytest.param(table("id = 'a--b'"), 4, '"a--b" cannot be the id', 'like "a-b"', id="doubled hyphen"),
        pytest.param(table("id = '../x'"), 4, "cannot be the id", 'like "x"', id="path as id"),
        pytest.param(table(f"id = '{'x' * 65}'"), 4, "cannot be the id", "at most 64", id="long id"),
        pytest.param(table("id = 7"), 4, "7 cannot be the id", "lower-case", id="number as id"),
        pytest.param(table("id = 'x'", "keywords = 'x'"), 3, 'category "x" has no label', "label = ", id="no label"),
        pytest.param(table("id = 'x'", "label = ''"), 5, 'category "x" has no label', "label = ", id="empty label"),
        pytest.param(table("id = 'x'", "label = '  '"), 5, "the label of", "label = ", id="blank label"),
        pytest.param(table("id = 'x'", 'label = "a\\nb"'), 5, "the label of", "one line", id="label of two lines"),
        pytest.param(
            table("id = 'x'", "label = 'X'"), 3, 'category "x" has no keywords', "keywords = [", id="no keywords"
        ),
        pytest.param(
            table("id = 'x'", "label = 'X'", "keywords = []"), 6, "has no keywords", "keywords = [", id="empty keywords"
        ),
        pytest.param(
            table("id = 'x'", "label = 'X'", "keywords = 3"),
            6,
            "not a list of texts",
            "keywords = [",
            id="keywords of another type",
        ),
        pytest.param(
            table("id = 'x'", "label = 'X'", "keywords = [", "  'fine',", "  '++',", "]"),
            8,
            '"++" in the keywords',
            "letter or digit",
            id="empty keyword",
        ),
        pytest.param(
            table("id = 'x'", "label = 'X'", "keywords = ['a', 5]"),
            6,
            "5 in the keywords",
            "a text",
            id="number as keyword",
        ),
        pytest.param(
            table("id = 'x'", "label = 'X'", "keywords = ['a']", "hints = []"),
            7,
            "has no hints",
            "hints = [",
            id="empty hints",
        ),
        pytest.param(
            table("id = 'x'", "label = 'X'", "keywords = ['a b']", "hints = ['A-B']"),
            7,
            "both a keyword and a hint",
            "one of the two",
            id="in both lists",
        ),
        pytest.param("x = " + "[" * 5_000, None, "nested too deeply", "flatten", id="nesting"),
    ],
)
def test_a_mistake_in_the_taxonomy_is_one_error_with_its_line(
    text: str, line: int | None, what: str, next_step: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        taxonomy(text)

    assert caught.value.where == ("taxonomy.toml" if line is None else f"taxonomy.toml:{line}")
    assert what in caught.value.what
    assert next_step in caught.value.next_step


def test_foreign_text_in_an_error_is_one_short_printable_line() -> None:
    with pytest.raises(ConfigError) as caught:
        taxonomy(table('id = "\\u001b[31m' + "x" * 500 + '"'))

    assert caught.value.what.isprintable()
    assert len(caught.value.what) < 200


@given(start=st.sampled_from(["", "version = 1\n", PLAIN]), text=st.text())
def test_any_text_is_a_taxonomy_or_one_error(start: str, text: str) -> None:
    error = None
    try:
        taxonomy(start + text)
    except ConfigError as caught:
        error = caught

    assert error is None or (error.where.startswith("taxonomy.toml") and error.next_step)
    assert error is not None or start == PLAIN


@pytest.mark.requirement("R081", "R086")
def test_an_override_is_for_one_exact_id() -> None:
    overrides = load_overrides(
        '[skills]\n"lib:tools/pdf" = "data"\n"lib:b" = ["data", "cloud-security", "data"]\n', "o.toml", taxonomy()
    )

    assert overrides.of("lib:tools/pdf") == ("data",)
    assert overrides.of("lib:b") == ("data", "cloud-security")
    assert overrides.of("lib:tools") is None
    assert overrides.of("LIB:b") is None


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "[skills]\n"])
def test_an_empty_file_overrides_nothing(text: str) -> None:
    assert load_overrides(text, "o.toml", taxonomy()) == NOTHING


def test_overrides_that_meet_no_skill_are_named() -> None:
    overrides = Overrides({"a:x": ("data",), "b:y": ("data",), "a:w": ("data",)})

    assert overrides.unmatched(["b:y", "c:z"]) == ("a:w", "a:x")
    assert overrides.unmatched(iter(overrides.skills)) == ()


def test_the_digest_of_a_source_is_of_its_own_overrides() -> None:
    before = Overrides({"a:x": ("data",), "b:y": ("data",)})
    after = Overrides({"b:y": ("data", "web"), "a:x": ("data",)})

    assert before.digest_of("a") == after.digest_of("a")
    assert before.digest_of("b") != after.digest_of("b")
    assert before.digest_of("c") == NOTHING.digest_of("c") != before.digest_of("a")


@pytest.mark.parametrize(
    ("text", "line", "what", "next_step"),
    [
        pytest.param('[skills]\n"a:x" = \n', 2, "not valid TOML", "correct", id="syntax"),
        pytest.param('[skill]\n"a:x" = "data"\n', 1, 'unknown key "skill"', '"skills"', id="unknown table"),
        pytest.param("skills = 3\n", 1, "skills must be a table", "[skills]", id="no table"),
        pytest.param(
            '[skills]\n"a:x" = ["data"]\n"a:y" = [\n  "data",\n  "date",\n]\n',
            5,
            'unknown category "date"',
            '"data"',
            id="misspelt category",
        ),
        pytest.param('[skills]\n"a:x" = "zzz"\n', 2, 'unknown category "zzz"', "add a category", id="unknown category"),
        pytest.param('[skills]\n"a:x" = []\n', 2, "no list of categories", "one category id", id="empty list"),
        pytest.param('[skills]\n"a:x" = [1]\n', 2, "no list of categories", "one category id", id="numbers"),
        pytest.param('[skills]\n\nlib.tools = ["data"]\n', 3, '"lib" is not the ID', "in quotes", id="unquoted id"),
        pytest.param(
            '[skills]\n"a:x" = "data"\n"a:x" = "data"\n', 3, "not valid TOML", "correct", id="the same id twice"
        ),
    ],
)
def test_a_mistake_in_the_overrides_is_one_error_with_its_line(text: str, line: int, what: str, next_step: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_overrides(text, "o.toml", taxonomy())

    assert caught.value.where == f"o.toml:{line}"
    assert what in caught.value.what
    assert next_step in caught.value.next_step


def test_a_misplaced_block_does_not_move_the_line_of_a_mistake() -> None:
    blocks = [
        f'[[categories]]\nid = "c{number}"\nlabel = "C"\nkeywords = ["[[categories]] {number}"]\n'
        for number in range(9)
    ]
    random.Random(1).shuffle(blocks)
    text = "version = 1\n" + "".join(blocks) + '[[categories]]\nid = "Nope!"\n'

    with pytest.raises(ConfigError) as caught:
        taxonomy(text)

    assert caught.value.where == "taxonomy.toml:39"
