"""The reader on kinds of malformed frontmatter: fences, YAML faults, values of the wrong shape."""

from __future__ import annotations

import pytest

from pipeline.reader import read_skill

BODY = "\n# Knots\n\nTie it well.\n"
GOOD = "---\nname: reef-knot\ndescription: Ties two ropes.\n---\n"


def read(text: str, folder: str = "reef-knot") -> tuple[str, str, tuple[str, ...]]:
    reading = read_skill(text.encode("utf-8"), folder)
    return reading.name, reading.description, reading.diagnostics


def test_sound_frontmatter_has_no_diagnostic() -> None:
    assert read(GOOD + BODY) == ("reef-knot", "Ties two ropes.", ())


@pytest.mark.parametrize(
    ("text", "diagnostics"),
    [
        pytest.param("\n \n\t\n" + GOOD + BODY, ["leading_blank"], id="blank lines before the fence"),
        pytest.param(
            "<!-- one\ntwo -->\n\n<!-- three -->\n" + GOOD + BODY, ["leading_comment"], id="comments before it"
        ),
        pytest.param("\ufeff\ufeff" + GOOD + BODY, ["bom"], id="two byte order marks"),
        pytest.param("\n\ufeff" + GOOD + BODY, ["bom", "leading_blank"], id="a byte order mark after a blank line"),
        pytest.param("\u200b" + GOOD + BODY, ["invisible_chars"], id="a zero-width space before the fence"),
        pytest.param(
            GOOD.replace("---", "-----") + BODY,
            ["malformed_opening_fence", "malformed_closing_fence"],
            id="long fences",
        ),
        pytest.param(
            "\n".join("  " + line for line in GOOD.split("\n")) + BODY,
            ["malformed_opening_fence", "malformed_closing_fence"],
            id="everything indented",
        ),
        pytest.param(
            GOOD.replace("---", "\u2014") + BODY,
            ["malformed_opening_fence", "malformed_closing_fence"],
            id="fences that an editor made into long dashes",
        ),
        pytest.param(
            GOOD.replace("---\nname", "---yaml\nname") + BODY,
            ["malformed_opening_fence"],
            id="a language after the fence",
        ),
        pytest.param(GOOD.replace(".\n---\n", ".\n---\t \n") + BODY, [], id="white space after the closing fence"),
        pytest.param(GOOD.replace(".\n---\n", ".\n...\n") + BODY, [], id="a closing fence of dots"),
        pytest.param(
            GOOD.replace(".\n---\n", ".\n--------\n") + BODY, ["malformed_closing_fence"], id="a long closing fence"
        ),
        pytest.param(
            GOOD.replace(".\n---\n", ".\n   ---\n") + BODY, ["malformed_closing_fence"], id="an indented closing fence"
        ),
        pytest.param(
            GOOD.replace(".\n---\n", ".\n---") + "# Knots\n\nTie it well.\n",
            ["malformed_closing_fence"],
            id="a heading glued to the fence",
        ),
        pytest.param(GOOD.replace(".\n---\n", ".\n") + BODY, ["unclosed_frontmatter"], id="no closing fence"),
        pytest.param(
            GOOD.replace(".\n---\n", ".\n") + BODY.lstrip(),
            ["unclosed_frontmatter"],
            id="no closing fence and no blank line",
        ),
        pytest.param(GOOD.removeprefix("---\n") + BODY, ["no_opening_fence"], id="no opening fence"),
        pytest.param(
            "```\n" + GOOD.removeprefix("---\n").removesuffix("---\n") + "```\n" + BODY,
            ["frontmatter_in_code_fence"],
            id="keys in a code block",
        ),
        pytest.param(
            "~~~markdown\n" + GOOD + BODY + "~~~\n", ["frontmatter_in_code_fence"], id="the whole file in a code block"
        ),
        pytest.param(
            GOOD + "\n" + GOOD.replace("reef", "sheet") + BODY,
            ["double_frontmatter"],
            id="a second block after a blank line",
        ),
    ],
)
def test_the_frontmatter_is_found_and_the_oddity_is_said(text: str, diagnostics: list[str]) -> None:
    reading = read_skill(text.encode("utf-8"), "reef-knot")

    assert (reading.name, reading.description) == ("reef-knot", "Ties two ropes.")
    assert sorted(reading.diagnostics) == sorted(diagnostics)
    assert reading.headings == ("Knots",)
    assert "Ties two ropes" not in reading.head or "double_frontmatter" in diagnostics


@pytest.mark.requirement("R211")
def test_frontmatter_without_a_closing_fence_gives_name_description_and_tags() -> None:
    reading = read_skill(b"---\nname: reef\ndescription: Ties.\ntags: [rope, sea]\n\n# Knots\n\nBody.\n", "x")

    assert (reading.name, reading.description, reading.tags) == ("reef", "Ties.", ("rope", "sea"))
    assert reading.head.startswith("# Knots")


def test_a_rule_far_down_the_body_does_not_close_frontmatter_that_is_not_yaml_up_to_it() -> None:
    text = "---\nname: reef-knot\ndescription: Ties: two ropes.\n\n# Knots\n\nProse.\n\n---\n\nMore.\n"
    reading = read_skill(text.encode(), "reef-knot")

    assert reading.description == "Ties: two ropes."
    assert set(reading.diagnostics) == {"unclosed_frontmatter", "yaml_error"}
    assert reading.head == "# Knots\n\nProse.\n\n---\n\nMore."


def test_a_long_closing_fence_wins_over_a_rule_further_down() -> None:
    reading = read_skill((GOOD.replace(".\n---\n", ".\n-----\n") + BODY + "\n---\n\nMore.\n").encode(), "reef-knot")

    assert reading.diagnostics == ("malformed_closing_fence",)
    assert reading.head == "# Knots\n\nTie it well.\n\n---\n\nMore."


def test_a_document_between_two_rules_is_no_frontmatter() -> None:
    reading = read_skill(b"---\n\n# Knots\n\nTies ropes.\n\n---\n\nMore.\n", "reef-knot")

    assert reading.diagnostics == ("no_frontmatter",)
    assert reading.description == "Ties ropes."
    assert reading.headings == ("Knots",)


def test_frontmatter_shown_in_a_code_block_of_a_document_is_not_its_own() -> None:
    text = f"# How skills look\n\nLike this:\n\n```yaml\n{GOOD}```\n"

    assert read(text, "guide") == ("guide", "Like this:", ("no_frontmatter",))


def test_text_before_the_frontmatter_stays_in_the_body() -> None:
    reading = read_skill(f"# Title\n\n{GOOD}{BODY}".encode(), "reef-knot")

    assert reading.diagnostics == ("text_before_frontmatter",)
    assert reading.headings == ("Title", "Knots")


def test_a_second_block_fills_what_the_first_leaves_out() -> None:
    reading = read_skill(f"---\nid: 7\n---\n{GOOD}{BODY}".encode(), "reef-knot")

    assert (reading.name, reading.description) == ("reef-knot", "Ties two ropes.")
    assert "double_frontmatter" in reading.diagnostics


def test_a_second_block_that_is_not_yaml_is_kept_out_of_headings_and_paragraph() -> None:
    reading = read_skill(f"---\nname: reef-knot\n---\n---\nkit: a: b\n---\n{BODY}".encode(), "reef-knot")

    assert reading.description == "Tie it well."
    assert reading.headings == ("Knots",)
    assert set(reading.diagnostics) == {"double_frontmatter", "description_missing"}


def test_a_rule_at_the_start_of_the_body_is_no_second_block() -> None:
    reading = read_skill(f"{GOOD}\n---\nnote: this is prose,\n\nand more of it.\n\n---\n{BODY}".encode(), "reef-knot")

    assert reading.diagnostics == ()
    assert reading.head.startswith("---\nnote: this is prose,")


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("description: Ties: ropes", "Ties: ropes"),
        ("description: Ties ropes:", "Ties ropes:"),
        ("description:\tTies: ropes", "Ties: ropes"),
        ("description:Ties ropes", "Ties ropes"),
        ("description:\u00a0Ties ropes", "Ties ropes"),
        ("description\uff1a 结绳", "结绳"),
        (" description: Ties ropes", "Ties ropes"),
        ("description: Ties ropes\n  use for: boats", "Ties ropes use for: boats"),
        ("description: Ties ropes\nand more\nlicense: MIT", "Ties ropes and more"),
        ("description: Ties ropes.\n\nAnd more.\nlicense: MIT", "Ties ropes. And more."),
        ("description: >\nTies ropes\nwell\nlicense: MIT", "Ties ropes well"),
        ("description: |\n\tTies ropes\n\twell", "Ties ropes well"),
        ("description: Ties # ropes\n  well", "Ties # ropes well"),
        ('description: "Ties "reef" knots"', 'Ties "reef" knots'),
        ('description: "Ties" and "loops"', '"Ties" and "loops"'),
        ("description: 'Ties the sailor's knots'", "Ties the sailor's knots"),
        ("description: 'Ties' knots", "'Ties' knots"),
        (r'description: "Matches \d+ in C:\path"', r"Matches \d+ in C:\path"),
        ('description: "Ties ropes.', "Ties ropes."),
        ("description: @sailor ties", "@sailor ties"),
        ("description: `reef` knots", "`reef` knots"),
        ("description: %5 of ropes", "%5 of ropes"),
        ("description: *Fast* knots", "*Fast* knots"),
        ("description: *fast", "*fast"),
        ("description: !fast knots", "!fast knots"),
        ("description: [beta] knots", "[beta] knots"),
        ("description: {beta} knots", "{beta} knots"),
        ("description: - knots", "- knots"),
        ("description: ? knots", "? knots"),
        ("description: | knots", "| knots"),
        ("description: > knots", "> knots"),
        ("description: , knots", ", knots"),
        ("description: Ties.\nmetadata: {a: [}", "Ties."),
        ("description: Ties.\nmetadata:\n\tkit: small", "Ties."),
        ("description: Ties.\nx: *nowhere", "Ties."),
        ("description: Ties.\n? [a, b]\n: c", "Ties."),
        ("description: Ties.\n<<<<<<< HEAD\nversion: 1\n=======\nversion: 2\n>>>>>>> other", "Ties."),
        ("description: Ties.\nx: !!python/object/apply:os.system [ls]", "Ties."),
    ],
)
def test_a_value_that_is_not_yaml_is_taken_as_its_author_wrote_it(line: str, description: str) -> None:
    name, found, diagnostics = read(f"---\nname: reef-knot\n{line}\n---\n{BODY}")

    assert (name, found, diagnostics) == ("reef-knot", description, ("yaml_error",))


def test_a_broken_entry_leaves_the_others_as_they_are() -> None:
    text = (
        "---\nname: reef-knot\ndescription: Ties: ropes\nmetadata:\n  author: A: B\n  tags: [sea, rope]\n"
        "retrieval_categories: [boats]\nhide: yes\n---\n"
    )
    reading = read_skill(text.encode(), "reef-knot")

    assert reading.tags == ("sea", "rope")
    assert reading.categories == ("boats",)
    assert reading.hidden


@pytest.mark.requirement("R212")
@pytest.mark.parametrize("header", [">", ">-", "|", "|-", "|+", ">2", "|2-", "> # folded"])
def test_block_scalars_of_a_description_are_unfolded(header: str) -> None:
    text = f"---\nname: reef-knot\ndescription: {header}\n  Ties two\n\n  ropes.\n  ---\n---\n{BODY}"

    assert read(text) == ("reef-knot", "Ties two ropes. ---", ())


@pytest.mark.parametrize(
    ("line", "description", "diagnostic"),
    [
        ("description: Ties # 1 rope", "Ties # 1 rope", "yaml_comment_in_value"),
        ("description: #1 for ropes", "#1 for ropes", "yaml_comment_in_value"),
        ("description: &fast knots", "&fast knots", "yaml_anchor_in_value"),
        ("description:", "Tie it well.", "description_empty"),
        ("description: ~", "Tie it well.", "description_empty"),
        ("description: '  '", "Tie it well.", "description_empty"),
        ("description: # not yet", "Tie it well.", "description_empty"),
        ("description: null\nsummary: Short.", "Short.", "description_empty"),
        ("summary: Short.", "Short.", "description_missing"),
        ("title: Knots", "Tie it well.", "description_missing"),
        ("description: 2048", "2048", "description_not_string"),
        ("description: yes", "yes", "description_not_string"),
        ("description: 2024-01-31", "2024-01-31", "description_not_string"),
        ("description: [Ties, ropes]", "Ties ropes", "description_not_string"),
        ("description:\n  - Ties\n  - {a: ropes, b: [well]}", "Ties ropes well", "description_not_string"),
        ("description: {short: Ties, long: }", "Ties", "description_not_string"),
        ("description: []", "Tie it well.", "description_not_string"),
        ("description: '{{what}}'", "{{what}}", "placeholder"),
        ("description: '[TODO: say what it does]'", "[TODO: say what it does]", "placeholder"),
        ("description: '[Your description here]'", "[Your description here]", "placeholder"),
        ("description: Todo lists. TODO comments.", "Todo lists. TODO comments.", None),
        ("description: <what it does>", "<what it does>", "placeholder"),
        ("Description: Ties.", "Ties.", "key_case"),
        ("Description: Other.\ndescription: Ties.", "Ties.", None),
        ("description: Old.\ndescription: Ties.", "Ties.", "duplicate_key:description"),
        ("description: 'A \\e[31m B'", "A \\e[31m B", None),
        ('description: "A \\e[31m\\0B"', "A [31mB", "control_chars"),
        ('description: "A\u202eB\u200b\U000e0041"', "AB", "invisible_chars"),
        ("description: می\u200cخواهم 👩\u200d👧", "می\u200cخواهم 👩\u200d👧", None),
        ("description: x\u200d\u200d\u200d", "x", "invisible_chars"),
    ],
)
def test_a_value_of_another_shape_is_read_and_said(line: str, description: str, diagnostic: str | None) -> None:
    name, found, diagnostics = read(f"---\nname: reef-knot\n{line}\n---\n{BODY}")

    assert (name, found) == ("reef-knot", description)
    assert diagnostics == (() if diagnostic is None else (diagnostic,))


@pytest.mark.parametrize(
    ("line", "name", "diagnostics"),
    [
        ("name: no", "no", {"name_not_string", "name_differs_from_dir"}),
        ("name: 1.10", "1.10", {"name_not_string", "name_not_kebab", "name_differs_from_dir"}),
        ("name: '2048'", "2048", {"name_differs_from_dir"}),
        ("name: [a, b]", "reef-knot", {"name_not_string"}),
        ("name: {a: b}", "reef-knot", {"name_not_string"}),
        ("name: [TODO]", "reef-knot", {"name_not_string", "placeholder"}),
        ("name:", "reef-knot", {"name_missing"}),
        ("name: ''", "reef-knot", {"name_missing"}),
        ("slug: other", "reef-knot", {"name_missing"}),
        ("name: '{{ name }}'", "reef-knot", {"placeholder"}),
        ("name: {{ name }}", "reef-knot", {"placeholder", "yaml_error"}),
        ("name: <your-skill>", "reef-knot", {"placeholder"}),
        ("name: TODO", "reef-knot", {"placeholder"}),
        ("name: todo", "todo", {"name_differs_from_dir"}),
        ("name: your-skill-name", "reef-knot", {"placeholder"}),
        ("name: Reef Knot", "Reef Knot", {"name_not_kebab", "name_differs_from_dir"}),
        ("name: reef--knot", "reef--knot", {"name_not_kebab", "name_differs_from_dir"}),
        ("name: -reef", "-reef", {"name_not_kebab", "name_differs_from_dir"}),
        ("name: ../../up", "../../up", {"name_not_kebab", "name_differs_from_dir"}),
        ("name: 结绳", "结绳", {"name_differs_from_dir"}),
        ("name: reef: knot # id", "reef: knot", {"yaml_error", "name_not_kebab", "name_differs_from_dir"}),
        (f"name: {'k' * 65}", "k" * 65, {"name_over_64", "name_differs_from_dir"}),
        (f"name: {'k' * 900}", "k" * 256, {"name_over_64", "name_differs_from_dir"}),
    ],
)
def test_the_name_is_the_frontmatters_or_the_folders(line: str, name: str, diagnostics: set[str]) -> None:
    found, description, said = read(f"---\n{line}\ndescription: Ties.\n---\n{BODY}")

    assert (found, description, set(said)) == (name, "Ties.", diagnostics)


def test_the_same_name_in_another_unicode_form_does_not_differ_from_the_folder() -> None:
    assert read("---\nname: caf\u00e9\ndescription: Ties.\n---\n" + BODY, "cafe\u0301")[2] == ()


def test_the_folder_is_named_by_the_last_part_of_its_path() -> None:
    assert read(GOOD + BODY, "sea/reef-knot") == ("reef-knot", "Ties two ropes.", ())
    assert read("Text.", "sea/reef-knot") == ("reef-knot", "Text.", ("no_frontmatter",))


@pytest.mark.requirement("R213")
@pytest.mark.parametrize(
    ("lines", "tags"),
    [
        ("tags:\n- sea\n- Rope", ("sea", "Rope")),
        ("tags:\n  - sea\n  - 'two words'\n  -\n  - 3.10", ("sea", "two words", "3.10")),
        ("tags: [sea, Sea, SEA]", ("sea",)),
        ("tags: sea, rope; knot", ("sea", "rope", "knot")),
        ("tags: '[sea, \"rope\"]'", ("sea", "rope")),
        ("tags: '#sea #rope'", ("sea", "rope")),
        ("tags: |\n  sea\n  rope", ("sea", "rope")),
        ("tags: two words", ("two words",)),
        ("tags: {sea: , rope: true}", ("sea", "rope")),
        ("tags: [[sea, [rope]], {a: knot}]", ("sea", "rope", "knot")),
        ("tags:", ()),
        ("Tags: [sea]", ("sea",)),
        ("metadata: {tags: sea, kit: {tags: [rope]}, other: 3}", ("sea", "rope")),
        ('metadata: \'{"kit": {"tags": ["sea"]}}\'', ("sea",)),
        ("tags: [sea]\nmetadata:\n  tags: [rope]", ("sea", "rope")),
        ("tags:\n\t- sea\n\t- rope", ("sea", "rope")),
        ("tags: [sea, rope", ("sea", "rope")),
    ],
)
def test_tags_are_read_however_they_are_written(lines: str, tags: tuple[str, ...]) -> None:
    assert read_skill(f"---\nname: a\ndescription: b\n{lines}\n---\n".encode(), "a").tags == tags


@pytest.mark.parametrize("value", ["true", "yes", "on", "True", "'true'", '"1"', "true # for now"])
@pytest.mark.parametrize("key", ["hide", "disableModelInvocation", "disable-model-invocation"])
def test_a_skill_can_ask_to_be_hidden(key: str, value: str) -> None:
    assert read_skill(f"---\nname: a\n{key}: {value}\n---\n".encode(), "a").hidden


@pytest.mark.parametrize(
    "line", ["hide: false", "hide:", "hide: 'no'", "hide: [true]", "user-invocable: false", "hidden: x"]
)
def test_anything_else_hides_nothing(line: str) -> None:
    assert not read_skill(f"---\nname: a\n{line}\n---\n".encode(), "a").hidden


def test_categories_are_taken_from_the_frontmatter_and_its_metadata_unchecked() -> None:
    text = "---\nname: a\nretrieval_categories: boats, Knots\nmetadata: {retrieval_categories: [sea]}\n---\n"

    assert read_skill(text.encode(), "a").categories == ("boats", "Knots", "sea")


@pytest.mark.parametrize(
    ("block", "diagnostics"),
    [
        ("- name: a\n- description: b\n", ("frontmatter_not_mapping",)),
        ("just a text\n", ("frontmatter_not_mapping",)),
        ("", ("name_missing", "description_missing")),
        ("# only a comment\n", ("name_missing", "description_missing")),
    ],
)
@pytest.mark.requirement("R210")
def test_frontmatter_without_keys_falls_back_to_folder_and_first_paragraph(
    block: str, diagnostics: tuple[str, ...]
) -> None:
    assert read(f"---\n{block}---\n{BODY}") == ("reef-knot", "Tie it well.", diagnostics)


def test_merge_keys_and_aliases_are_resolved() -> None:
    text = "---\nbase: &b {name: reef-knot, description: Other.}\n<<: *b\nwords: &w Ties.\ndescription: *w\n---\n"

    assert read(text + BODY) == ("reef-knot", "Ties.", ())


def test_a_description_is_cut_at_its_limit_and_says_so() -> None:
    name, description, diagnostics = read(f"---\nname: reef-knot\ndescription: {'rope ' * 2000}\n---\n{BODY}")

    assert name == "reef-knot"
    assert 3_900 < len(description) <= 4_000
    assert description.endswith("rope")
    assert diagnostics == ("description_cut",)
