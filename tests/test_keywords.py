"""Keywords are whole words or phrases, whatever their case, hyphens or script."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline.keywords import Matcher, joined, plurals, words

LATIN = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
ANYTHING = st.text(st.characters())  # halves of surrogate pairs included


def found(keyword: str, text: str) -> bool:
    return bool(Matcher([(keyword, 0)]).find(words(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Threat-Hunting_with  SIEM", ["threat", "hunting", "with", "siem"], id="separators"),
        pytest.param("C++, C# and .NET (F#)", ["cpp", "csharp", "and", "dotnet", "fsharp"], id="signs that are names"),
        pytest.param(
            "file#L10 abc++ asp.net x.c#y", ["file", "l10", "abc", "asp", "net", "x", "c", "y"], id="signs that are not"
        ),
        pytest.param("使用Python编写", ["使", "用", "python", "编", "写"], id="Latin beside Han"),
        pytest.param("データ分析", ["デ", "ー", "タ", "分", "析"], id="kana and Han"),
        pytest.param("ＡＷＳ Ｌａｍｂｄａ", ["aws", "lambda"], id="full width"),
        pytest.param("cafe\u0301 naïve Straße", ["café", "naïve", "strasse"], id="accents and folding"),
        pytest.param("cyber\u200bsecu\u00adrity", ["cybersecurity"], id="invisible characters"),
        pytest.param("हिन्दी और বাংলা", ["हिन्दी", "और", "বাংলা"], id="vowel signs"),
        pytest.param("“quoted” – dash… 🚀rocket", ["quoted", "dash", "rocket"], id="symbols"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_a_text_becomes_folded_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("ics", "genomICS and metrICS"),
        ("policy", "cyberpolicy"),
        ("api", "rapid capital APIary"),
        ("windows", "a context window"),
        ("news", "something new"),
        ("cloud security", "cloud and security"),
        ("cloud security", "cloud securityx"),
        ("net", "dotnet"),
        ("c#", "c #"),
        ("数据分析", "数据的分析"),
    ],
)
def test_a_keyword_is_not_found_inside_other_words(keyword: str, text: str) -> None:
    assert not found(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("ics", "ICS/OT"),
        ("cloud security", "Cloud-Security"),
        ("cloud-security", "cloud_security"),
        ("CLOUD security", "the cloud  security of"),
        ("policy", "two Policies"),
        ("smart contract", "smart contracts"),
        ("box", "boxes"),
        ("genomics", "(genomics)"),
        ("C#", "in c#."),
        ("node.js", "Node JS"),
        ("kubernetes", "部署Kubernetes集群"),
        ("数据分析", "做数据分析的工具"),
        ("보안", "네트워크보안을"),
    ],
)
def test_a_keyword_is_found_in_each_of_its_spellings(keyword: str, text: str) -> None:
    assert found(keyword, text)


def test_of_nested_keywords_each_is_found_and_the_inner_ones_name_the_outer() -> None:
    matcher = Matcher([("cloud", 1), ("cloud security", 2), ("security", 3), ("security posture", 4)])

    assert matcher.find(words("cloud security")) == [(2, ()), (1, (2,)), (3, (2,))]
    assert matcher.find(words("cloud security posture")) == [(2, ()), (1, (2,)), (4, ()), (3, (4,))]
    assert matcher.find(words("security of a cloud")) == [(3, ()), (1, ())]


def test_one_keyword_can_have_several_values() -> None:
    assert Matcher([("siem", 1), ("SIEM", 2)]).find(["siem"]) == [(1, ()), (2, ())]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("policy", ("policies",)),
        ("key", ("keys",)),
        ("box", ("boxes",)),
        ("branch", ("branches",)),
        ("skill", ("skills",)),
    ],
)
def test_a_singular_has_its_regular_plural(word: str, expected: tuple[str, ...]) -> None:
    assert plurals(word) == expected


@pytest.mark.parametrize("word", ["ci", "windows", "gps", "2fa", "café", "数"])
def test_short_plural_and_foreign_words_have_no_plural(word: str) -> None:
    assert plurals(word) == ()


@given(keyword=LATIN, before=LATIN, after=LATIN)
def test_no_keyword_is_found_within_a_longer_word(keyword: str, before: str, after: str) -> None:
    for word in (before + keyword, keyword + after, before + keyword + after):
        assume(word not in plurals(keyword))
        assert not found(keyword, f"1 {word} 2")


@given(text=ANYTHING)
def test_any_text_has_words_and_folding_them_again_changes_nothing(text: str) -> None:
    once = words(text)

    assert words(joined(once)) == once


@given(before=ANYTHING, keyword=st.lists(LATIN, min_size=1, max_size=3), after=ANYTHING)
def test_a_keyword_that_stands_alone_is_found_in_any_text(before: str, keyword: list[str], after: str) -> None:
    assert found(" ".join(keyword), f"{before}\n{'-'.join(keyword)}\n{after}")
