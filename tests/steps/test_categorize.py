"""Categorize: by hand before declared before keywords, and evidence that says why."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import Categorized, Evidence, Found
from pipeline.steps.categorize import MOST_CATEGORIES, MOST_DECLARED, MOST_EVIDENCE, make
from pipeline.taxonomy import Category, Taxonomy, load_taxonomy
from tests.steps.hostile import HOSTILE
from tests.support import ROOT

ANYTHING = st.text(st.characters(), max_size=60)


def category(identifier: str, *keywords: str, hints: tuple[str, ...] = ()) -> Category:
    return Category(id=identifier, label=identifier, keywords=keywords, hints=hints)


SMALL = Taxonomy(
    (
        category("cloud-security", "cloud security", "cspm"),
        category("cybersecurity", "security", hints=("threat",)),
        category("documents", "pdf", "spreadsheet", hints=("file", "report")),
        category("governance", "policy", "audit"),
        category("kubernetes", "kubernetes", "helm"),
        category("ot-ics", "ics", "scada"),
        category("testing", "unit test", "数据测试"),
    )
)


@pytest.fixture(scope="module")
def shipped() -> Taxonomy:
    return load_taxonomy((ROOT / "taxonomy.toml").read_text(encoding="utf-8"), "taxonomy.toml")


def skill(**values: object) -> Found:
    defaults: dict[str, object] = {
        "id": "library:some/folder",
        "source": "library",
        "folder": "some/folder",
        "path": "/library/some/folder/SKILL.md",
        "name": "thing",
        "description": "",
        "tags": (),
        "categories": (),
        "hidden": False,
        "digest": "",
        "key": "",
        "reading": "",
        "body_digest": "",
        "body_chars": 0,
        "sketch": (),
        "package_digest": "",
        "files": 0,
        "bytes": 0,
    }
    return Found(**{**defaults, **values})  # type: ignore[arg-type]


def categories(
    taxonomy: Taxonomy = SMALL, head: str = "", headings: tuple[str, ...] = (), **values: object
) -> tuple[str, ...]:
    return make(skill(**values), head, headings, None, taxonomy).categories


@pytest.mark.requirement("R081", "R086")
def test_an_override_wins_over_everything_else() -> None:
    found = skill(name="pdf", description="Fills in PDF forms.", categories=("governance", "bogus"))

    assert make(found, "", (), ("testing", "ot-ics"), SMALL) == Categorized(
        id=found.id,
        categories=("testing", "ot-ics"),
        evidence=(Evidence(category="testing", rule="override"), Evidence(category="ot-ics", rule="override")),
    )


@pytest.mark.requirement("R080")
def test_declared_categories_win_over_keywords() -> None:
    made = make(skill(name="pdf", categories=("governance", "testing")), "", (), None, SMALL)

    assert made.categories == ("governance", "testing")
    assert [row.rule for row in made.evidence] == ["declared", "declared"]
    assert made.diagnostics == ()


@pytest.mark.parametrize("written", ["Cloud Security", " cloud_security ", "CLOUD-SECURITY"])
def test_a_declared_category_may_be_spelled_like_a_label(written: str) -> None:
    assert categories(categories=(written,)) == ("cloud-security",)


@pytest.mark.requirement("R085")
def test_an_unknown_declared_category_is_told_and_the_others_count() -> None:
    made = make(skill(name="pdf", categories=("bogus", "testing", "a\x1b[31mb")), "", (), None, SMALL)

    assert made.categories == ("testing",)
    assert made.diagnostics == ("unknown_category:bogus", "unknown_category:a[31mb")


@pytest.mark.requirement("R082", "R085")
def test_when_no_declared_category_exists_the_keywords_decide() -> None:
    made = make(skill(name="pdf", categories=("bogus",)), "", (), None, SMALL)

    assert made.categories == ("documents",)
    assert made.diagnostics == ("unknown_category:bogus",)


def test_thousands_of_declared_categories_are_cut_short() -> None:
    many = tuple(f"bogus-{number}" for number in range(5_000))
    made = make(skill(categories=(*SMALL.labels, *many)), "", (), None, SMALL)

    assert made.categories == tuple(SMALL.labels)
    assert len(made.diagnostics) <= MOST_DECLARED
    assert all(len(text) < 100 for text in make(skill(categories=("x" * 9_000,)), "", (), None, SMALL).diagnostics)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"name": "kubernetes-audits", "description": "Looks at pods."}, id="name"),
        pytest.param({"description": "Looks at Kubernetes."}, id="description"),
        pytest.param({"description": "Use when a helm release fails."}, id="trigger"),
        pytest.param({"tags": ("Kubernetes",)}, id="tag"),
        pytest.param({"folder": "kubernetes/pods/thing"}, id="folder above"),
        pytest.param({"folder": "x/kubernetes", "name": "thing"}, id="own folder of another name"),
    ],
)
def test_one_keyword_in_a_field_that_matters_is_enough(values: dict[str, object]) -> None:
    assert "kubernetes" in categories(**values)


@pytest.mark.parametrize(
    ("head", "headings"),
    [
        pytest.param("Mind the policy.", (), id="one word of the body"),
        pytest.param("policy " * 200, (), id="the same word again and again"),
        pytest.param("", ("Policy",), id="one heading"),
        pytest.param("A policy is a policy.", ("Policy", "More policies"), id="one word in headings and body"),
    ],
)
def test_one_stray_word_outside_them_decides_nothing(head: str, headings: tuple[str, ...]) -> None:
    assert categories(head=head, headings=headings, description="Bakes bread.") == ()


def test_a_stray_word_adds_nothing_to_what_a_skill_is_about() -> None:
    assert categories(name="pdf-forms", description="Fills in PDF forms.", head="Mind the policy.") == ("documents",)


def test_several_weak_words_together_are_enough() -> None:
    assert categories(head="An audit of each policy.", headings=("Audit", "Policy")) == ("governance",)


def test_a_lone_hint_in_the_description_decides_nothing_and_one_in_the_name_does() -> None:
    assert categories(description="Reads a file.") == ()
    assert categories(name="file-thing") == ("documents",)
    assert categories(description="Writes a report into a file.") == ("documents",)


def test_a_keyword_outweighs_a_hint() -> None:
    assert categories(description="Finds each threat in a PDF.") == ("documents",)


@pytest.mark.parametrize("text", ["genomICS metrICS", "genomics", "analytics of topics", "ethICSx"])
def test_a_keyword_inside_a_word_is_none(text: str) -> None:
    assert categories(name=text, description=text, tags=(text,), folder=f"{text}/x", head=text, headings=(text,)) == ()


def test_the_name_of_the_source_gives_no_category() -> None:
    assert categories(source="kubernetes-pdf-policy", id="kubernetes-pdf-policy:some/folder") == ()


def test_what_a_skill_is_not_for_gives_no_category() -> None:
    assert categories(description="Fills in PDF forms. Not for Kubernetes or SCADA.") == ("documents",)


def test_a_keyword_does_not_reach_from_one_text_into_the_next() -> None:
    assert "testing" not in categories(tags=("unit", "test"), headings=("A unit", "Test it"), folder="unit/test/x")


def test_a_longer_keyword_of_another_category_halves_the_shorter_one() -> None:
    assert categories(tags=("cloud security",)) == ("cloud-security",)
    assert categories(name="cloud-security") == ("cloud-security", "cybersecurity")


def test_a_longer_keyword_of_the_same_category_swallows_the_shorter_one() -> None:
    one = Taxonomy((category("a", "cloud security", "security"), category("b", "pdf")))

    assert [row.keyword for row in make(skill(name="cloud-security"), "", (), None, one).evidence] == ["cloud security"]


def test_side_remarks_beside_a_strong_subject_are_left_out() -> None:
    strong = {"name": "kubernetes-helm", "tags": ("kubernetes", "helm"), "description": "Kubernetes with helm."}

    assert categories(**strong, head="The ics and scada of it.") == ("kubernetes",)
    assert categories(**{**strong, "tags": ("policy",)}) == ("kubernetes",)


def test_the_best_category_comes_first_and_equals_go_by_id() -> None:
    assert categories(name="pdf policy", description="A policy.") == ("governance", "documents")
    assert categories(name="pdf scada policy") == ("documents", "governance", "ot-ics")


def test_a_skill_that_names_everything_gets_no_more_than_a_few() -> None:
    everything = " ".join(term.text for term in SMALL.terms)

    assert len(categories(name=everything, description=everything)) == MOST_CATEGORIES


def test_the_evidence_names_keyword_and_field() -> None:
    made = make(
        skill(name="pdf-forms", description="Reads PDFs. Use when a spreadsheet is wanted."), "", ("PDF",), None, SMALL
    )

    assert made.evidence == tuple(
        Evidence(category="documents", rule="keyword", keyword=keyword, field=field)
        for keyword, field in [
            ("pdf", "name"),
            ("pdf", "description"),
            ("spreadsheet", "triggers"),
            ("pdf", "headings"),
        ]
    )


def test_the_evidence_is_bounded() -> None:
    big = Taxonomy((category("big", *(f"word{number}" for number in range(100))),))
    text = " ".join(term.text for term in big.terms)

    assert len(make(skill(description=text), text, (text,), None, big).evidence) == MOST_EVIDENCE


def test_latin_keywords_stand_out_among_chinese_ones() -> None:
    assert categories(description="使用PDF生成") == ("documents",)
    assert categories(description="自动数据测试工具") == ("testing",)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:20]))
def test_hostile_texts_are_categorized_like_any_other(text: str, shipped: Taxonomy) -> None:
    made = make(skill(name=text, description=text, tags=(text,), categories=(text,)), text, (text,), None, shipped)

    assert set(made.categories) <= shipped.labels.keys()
    assert all(diagnostic.isprintable() for diagnostic in made.diagnostics)


@given(
    name=ANYTHING,
    description=ANYTHING,
    tags=st.lists(ANYTHING),
    folder=ANYTHING,
    head=ANYTHING,
    headings=st.lists(ANYTHING),
)
def test_any_skill_gets_some_or_no_categories_of_the_taxonomy(
    name: str, description: str, tags: list[str], folder: str, head: str, headings: list[str]
) -> None:
    found = skill(name=name, description=description, tags=tuple(tags), folder=folder)
    made = make(found, head, tuple(headings), None, SMALL)

    assert len(made.categories) <= MOST_CATEGORIES
    assert len(set(made.categories)) == len(made.categories)
    assert {row.category for row in made.evidence} == set(made.categories) <= SMALL.labels.keys()
    assert make(found, head, tuple(headings), None, SMALL) == made


WORDS = st.lists(
    st.sampled_from([*(term.text for term in SMALL.terms), "bread", "and", "cloud", "unit"]), max_size=8
).map(" ".join)


@given(name=WORDS, description=WORDS, head=WORDS, order=st.randoms(use_true_random=False))
def test_the_order_of_the_vocabulary_means_nothing(
    name: str, description: str, head: str, order: random.Random
) -> None:
    found = skill(name=name, description=description)
    shuffled = list(SMALL.categories)
    order.shuffle(shuffled)

    assert make(found, head, (), None, Taxonomy(tuple(shuffled))) == make(found, head, (), None, SMALL)


@pytest.mark.requirement("R087")
@given(name=WORDS, description=WORDS, head=WORDS)
def test_a_category_that_a_skill_does_not_name_leaves_it_alone(name: str, description: str, head: str) -> None:
    found = skill(name=name, description=description)
    larger = Taxonomy((*SMALL.categories, category("bakery", "sourdough", "rye bread")))

    assert make(found, head, (), None, larger) == make(found, head, (), None, SMALL)
