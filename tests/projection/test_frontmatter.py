"""The head of a SKILL.md: what a harness reads there, and changing only that."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from serve.projection import frontmatter


def by_yaml(text: str) -> dict[str, object]:
    """The head as a YAML parser reads it."""
    return yaml.safe_load(text.removeprefix("\ufeff").split("---", 2)[1])


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("name: pdf", "pdf"),
        ("name:   My Skill  ", "My Skill"),
        ("name: 'single'", "single"),
        ('name: "double" # comment', "double"),
        ("name: pdf # comment", "pdf"),
        ("name: 3d-modeling", "3d-modeling"),
        ("name: данные", "данные"),
        ("name: C# & more, [or] less", "C# & more, [or] less"),
    ],
)
def test_a_plain_name_is_read_as_yaml_reads_it(line: str, name: str) -> None:
    text = f"---\n{line}\ndescription: x\n---\nbody\n"

    assert frontmatter.read(text).name == name == by_yaml(text)["name"]


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc"), whitelist_characters="\t"), max_size=30))
def test_a_name_that_is_read_at_all_is_what_yaml_reads(value: str) -> None:
    text = f"---\nname: {value}\ndescription: x\n---\n"
    name = frontmatter.read(text).name

    if name:
        assert by_yaml(text)["name"] == name


@pytest.mark.parametrize(
    "value",
    [
        *("123", "1.5", "1e5", "0x1F", "true", "No", "null", "~", "2024-01-02", "12:30:00", ".inf", "1_000", "", "-"),
        *("[a]", "{a: b}", "&x y", "*x", "!t x", "|\n  block", ">\n  folded", "it''s'", '"a\\tb"', "a: b", "@x", "`x`"),
        *("tab\t", "\tx", "two\n  lines", "two\n\n  lines"),
    ],
)
def test_any_other_form_counts_as_unknown(value: str) -> None:
    assert frontmatter.read(f"---\nname: {value}\ndescription: x\n---\n").name == ""


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: a\nname: b\n---\n",
        "---\nname: a\n",
        "--- \t#x\nname: a\n---\n",
        "<!-- x -->\n---\nname: a\n---\n",
    ],
)
def test_a_head_that_readers_understand_differently_is_not_relied_on(text: str) -> None:
    assert frontmatter.read(text) == frontmatter.Head("", False, {}, None)


def test_a_text_without_a_head_has_no_name() -> None:
    assert frontmatter.read("# Heading\n---\nname: x\n---\n").name is None
    assert frontmatter.read("---\ndescription: x\n---\n").name is None


@pytest.mark.parametrize("end", ["---", "--- ", "...", "...\n", "... \r\nbody\n", "...\nbody\n\n---\nmore\n"])
def test_a_closing_line_that_not_all_readers_know_is_written_anew_and_nothing_else(end: str) -> None:
    text = f"---\nname: a\ndescription: x\n{end}"
    head = frontmatter.read(text)
    made = frontmatter.renamed(text, None)

    assert head[:2] == ("a", True)
    assert head.odd_end is not None
    assert made == text[: head.odd_end[0]] + "---\n" + text[head.odd_end[1] :]
    assert frontmatter.read(made) == head._replace(odd_end=None)
    assert frontmatter.renamed(made, None) == made


def test_dots_right_above_the_closing_dashes_are_no_closing_line_of_their_own() -> None:
    text = "---\nname: a\ndescription: x\n...\n---\nbody\n"

    assert frontmatter.read(text)[:2] == ("a", True)
    assert frontmatter.read(text).odd_end is None


def test_a_head_with_a_very_long_description_is_read_whole() -> None:
    text = f"---\ndescription: {'word ' * 40_000}\nname: a\n---\nbody\n"

    assert frontmatter.read(text)[:2] == ("a", True)
    same = frontmatter.renamed(text, "b") == text.replace("name: a", "name: b")  # their difference takes long to show
    assert same


def test_the_line_ends_of_the_head_are_kept_whatever_those_of_the_body_are() -> None:
    assert frontmatter.renamed("---\nname: a\n---\nbody\r\n", "b") == "---\nname: b\n---\nbody\r\n"


def test_renaming_changes_the_line_of_the_name_and_nothing_else() -> None:
    text = (
        "\ufeff---\r\n# why\r\nname: old # note\r\ntags: [a]\r\ndescription: >\r\n  name: no\r\n---\r\nname: body\r\n"
    )

    assert frontmatter.renamed(text, "new") == text.replace("name: old # note", "name: new")


def test_a_missing_name_and_description_are_put_first() -> None:
    text = "---\ntags: [a]\n---\nbody\n"

    assert frontmatter.renamed(text, "new", 'says "this"') == (
        '---\ndescription: "says \\"this\\""\nname: new\ntags: [a]\n---\nbody\n'
    )


def test_a_name_over_several_lines_is_replaced_whole() -> None:
    text = "---\nname: >\n  folded\n\n  name\ndescription: x\n---\n"

    assert by_yaml(frontmatter.renamed(text, "new")) == {"name": "new", "description": "x"}


@pytest.mark.parametrize(
    "text", ["# Heading\n", "", "---\nname: a\nname: b\n---\nbody", "\ufeffwords", "---\nopen: head\n"]
)
def test_a_text_without_a_sure_head_gets_one_and_stays_whole_below_it(text: str) -> None:
    made = frontmatter.renamed(text, "123", "Words.")

    assert by_yaml(made) == {"name": "123", "description": "Words."}
    assert made.endswith(f"---\n\n{text.removeprefix(chr(0xFEFF))}")
    assert frontmatter.read(made)[:2] == ("123", True)


@given(st.text(max_size=200), st.text(max_size=200))
def test_what_is_written_is_what_yaml_reads(body: str, description: str) -> None:
    made = frontmatter.renamed(body, "name-1", description)
    head = frontmatter.read(made)

    assert head.name == "name-1"
    shown = "".join(char for char in " ".join(description.split()) if char.isprintable())
    if description:
        assert by_yaml(made).get("description") == shown


def test_a_long_text_without_an_end_is_read_in_no_time_worth_mentioning() -> None:
    assert frontmatter.read("---\n" + "name : x\n" * 200_000).name == ""
    assert frontmatter.read("---\n" + "name:\n " * 200_000).name == ""
    assert frontmatter.read("---\nname: x\n" + " \n" * 500_000 + "---\n").name == "x"
    assert frontmatter.read("---\n" + "name \n" * 300_000 + "---\n").name is None
