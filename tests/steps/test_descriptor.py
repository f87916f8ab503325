"""What the descriptor step makes of a skill's own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.steps import descriptor
from serve.contract import Descriptor


def described(description: str, name: str = "some-skill") -> Descriptor:
    return descriptor.make(name, description, [], [], "")


@pytest.mark.parametrize(
    ("description", "purpose", "triggers", "limits"),
    [
        pytest.param(
            "Merges PDF files. Use when the user wants to join documents. NOT for scanned pages.",
            "Merges PDF files.",
            ("join documents",),
            ("scanned pages",),
            id="the three kinds of clauses are told apart",
        ),
        pytest.param(
            "Draws charts, use when a report needs a figure; do not use for tables",
            "Draws charts.",
            ("a report needs a figure",),
            ("tables",),
            id="clauses begin inside a sentence after a pause",
        ),
        pytest.param(
            "Draws charts Use this skill whenever numbers are dull Triggers: 'plot this', 'a chart'",
            "Draws charts.",
            ("numbers are dull", "'plot this', 'a chart'"),
            (),
            id="capitals begin a clause where the full stop is missing",
        ),
        pytest.param(
            "This skill should be used when the user asks to deploy. Also use when working with clusters.",
            "deploy",
            ("deploy", "clusters"),
            (),
            id="a description of triggers alone has its first trigger as its purpose",
        ),
        pytest.param(
            "Activates for requests involving log analysis. Trigger keywords: syslog, journald",
            "log analysis",
            ("log analysis", "syslog, journald"),
            (),
            id="activation and keywords are triggers",
        ),
        pytest.param(
            "Plans trips (use when someone is travelling). Not for business, not for groups.",
            "Plans trips.",
            ("someone is travelling",),
            ("business", "groups"),
            id="brackets and lists of limits",
        ),
        pytest.param(
            "Limits API calls. Run on clusters. Apply for grants.",
            "Limits API calls. Run on clusters. Apply for grants.",
            (),
            (),
            id="verbs that only look like markers stay in the purpose",
        ),
        pytest.param(
            "Use when reading formats, e.g. epub. Reads books.",
            "Reads books.",
            ("reading formats, e.g. epub",),
            (),
            id="an abbreviation ends no sentence",
        ),
        pytest.param("Use when working with some skill.", "", (), (), id="a trigger that repeats the name is dropped"),
        pytest.param("Use when this domain is relevant.", "", (), (), id="a trigger of filler is dropped"),
        pytest.param(
            "从文章中提取笔记。当用户需要整理资料时使用此技能。不适用于翻译。",
            "从文章中提取笔记。",
            ("用户需要整理资料",),
            ("翻译",),
            id="Chinese clauses",
        ),
        pytest.param(
            "画像を生成する。ユーザーがロゴを作りたい場合に使用します。写真には使用しない。",
            "画像を生成する。",
            ("ユーザーがロゴを作りたい",),
            ("写真",),
            id="Japanese clauses",
        ),
        pytest.param(
            "문서를 요약합니다. 회의록이 필요할 때 사용합니다.",
            "문서를 요약합니다.",
            ("회의록이 필요할",),
            (),
            id="Korean clauses",
        ),
        pytest.param(
            "- Deploys sites\n- Use when a release is due\n- Never use for databases",
            "Deploys sites.",
            ("a release is due",),
            ("databases",),
            id="a list has a clause on each line",
        ),
        pytest.param("", "", (), (), id="nothing said"),
    ],
)
def test_a_description_is_cut_into_clauses(
    description: str, purpose: str, triggers: tuple[str, ...], limits: tuple[str, ...]
) -> None:
    made = described(description)

    assert (made.purpose, made.triggers, made.limits) == (purpose, triggers, limits)


def test_what_is_embedded_follows_the_description_and_leaves_limits_and_boilerplate_out() -> None:
    made = described("Use this skill when the user wants maps. Draws atlases. NOT for globes.", name="atlas-maker")

    assert made.short == "atlas maker. maps. Draws atlases"


def test_what_is_embedded_is_bounded() -> None:
    made = described("A word and another one. " * 400)

    assert len(made.short) <= descriptor.SHORT_CHARS


def test_tags_stand_in_for_a_missing_description() -> None:
    made = descriptor.make("x", "", ["pdf", "forms"], [], "")

    assert (made.purpose, made.short) == ("pdf, forms", "x. pdf, forms")


def test_the_head_keeps_words_and_code_and_loses_markup() -> None:
    head = (
        "# Title\n\n<!-- hidden -->\nSee [the guide](https://example.org/a) and ![a logo](logo.png).\n"
        "> **Bold** `code_name`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint(1)\n```\n<br/>R&amp;D"
    )
    made = descriptor.make("x", "", [], [], head)

    assert made.head == "Title See the guide and a logo. Bold code_name a b 1 2 print(1) R&D"


def test_an_unclosed_comment_hides_the_rest() -> None:
    assert descriptor.clean("seen <!-- hidden") == "seen"


def test_headings_lose_their_markup_and_empty_ones_go() -> None:
    made = descriptor.make("x", "", [], ["## `Run` it", "**", "Plain: "], "")

    assert made.headings == ("Run it", "Plain")


def test_invisible_characters_are_removed() -> None:
    made = descriptor.make("na\u200bme", "De\x1b[31mtects\u202e things\u00a0now", [], ["He\x00ad"], "bo\ufeffdy\x07")

    assert (made.name, made.purpose, made.headings, made.head) == (
        "name",
        "De[31mtects things now.",
        ("Head",),
        "body",
    )


@given(
    st.text(max_size=60),
    st.text(max_size=300) | st.text(alphabet="Use when not for.;\n( )-", max_size=300),
    st.lists(st.text(max_size=20), max_size=3),
    st.lists(st.text(max_size=40), max_size=3),
    st.text(max_size=300),
)
def test_any_skill_has_a_descriptor_of_plain_single_lines(
    name: str, description: str, tags: list[str], headings: list[str], head: str
) -> None:
    made = descriptor.make(name, description, tags, headings, head)
    texts = [made.name, made.purpose, made.head, made.short, *made.triggers, *made.limits, *made.headings]

    assert descriptor.make(name, description, tags, headings, head) == made
    assert all(text == " ".join(text.split()) for text in texts)
    assert all([*made.triggers, *made.limits, *made.headings])


@pytest.mark.parametrize("piece", ["\t", " ", "(", "use ", "also please ", "<!--", "[", "```", "。", "not for ", "- "])
def test_hostile_repetition_is_cut_to_its_bounds(piece: str) -> None:
    endless = piece * 200_000
    made = descriptor.make(endless, endless, [endless] * 200, [endless] * 200, endless)

    assert len(made.name) <= descriptor.MAX_NAME_CHARS
    assert len(made.head) <= descriptor.HEAD_CHARS
    assert len(made.headings) <= descriptor.MAX_HEADINGS
    assert len(made.triggers) <= descriptor.MAX_CLAUSES
    assert len(made.limits) <= descriptor.MAX_CLAUSES
    assert len(made.purpose) <= descriptor.MAX_DESCRIPTION_CHARS
