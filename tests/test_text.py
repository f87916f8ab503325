"""One tokenisation for building and asking: what becomes a token, and in which form."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serve import text
from serve.text import MAX_TOKEN, sentences, term_hash, tokens
from tests.support import ROOT


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        pytest.param("Parsing parsed PARSES", ["pars", "pars", "pars"], id="words are folded and stemmed"),
        pytest.param("how do I use this", [], id="stop words say nothing"),
        pytest.param("the user's file don't", ["user", "file"], id="an apostrophe ends a word"),
        pytest.param("snake_case", ["snake", "case", "snakecas"], id="snake case gives its parts and the whole"),
        pytest.param("kebab-case", ["kebab", "case", "kebabcas"], id="so does kebab case"),
        pytest.param("getUserName", ["getusernam", "get", "user", "name"], id="and camel case"),
        pytest.param("HTTPServerError", ["httpservererror", "http", "server", "error"], id="with an acronym in it"),
        pytest.param("JavaScript GitHub", ["javascript", "github"], id="a product with two capitals is one word"),
        pytest.param("node.js nodejs", ["node", "js", "nodej", "nodej"], id="a dotted name meets its joined spelling"),
        pytest.param("python 3.11, v1.2.3", ["python", "3.11", "v1.2.3"], id="versions stay whole"),
        pytest.param("gpt-3.5", ["gpt", "3.5", "gpt35"], id="also behind a hyphen"),
        pytest.param("k8s GPT-4 T1055", ["k8s", "gpt", "4", "gpt4", "t1055"], id="numbers stay"),
        pytest.param("C++ C# F# .NET", ["cpp", "csharp", "fsharp", "dotnet"], id="languages keep their signs"),
        pytest.param("I/O and A/B", ["io", "ab"], id="single letters around a slash are one word"),
        pytest.param("café naïve", ["cafe", "naiv"], id="accents are dropped"),
        pytest.param("ＰＤＦ", ["pdf"], id="full-width letters are letters"),
        pytest.param("数据库", ["数据", "据库"], id="Chinese gives pairs"),
        pytest.param("画像を生成", ["画像", "像を", "を生", "生成"], id="Japanese gives pairs"),
        pytest.param("新的API连接", ["新的", "api", "连接"], id="Latin words inside Chinese stand alone"),
        pytest.param("字", ["字"], id="a single character is kept"),
        pytest.param("हिन्दी", ["हिन्दी"], id="vowel signs do not break a word"),
        pytest.param("ไทย", ["ไท", "ทย"], id="Thai gives pairs"),
        pytest.param("x" * (MAX_TOKEN + 1), [], id="an endless run is no word"),
        pytest.param("", [], id="nothing gives nothing"),
    ],
)
def test_a_text_becomes_tokens(given_text: str, expected: list[str]) -> None:
    assert tokens(given_text) == expected


def test_a_slug_and_its_words_share_their_tokens() -> None:
    assert set(tokens("pull request review")) < set(tokens("pull-request_review"))


@given(st.text(max_size=200))
def test_any_text_gives_bounded_tokens_and_the_same_ones_again(any_text: str) -> None:
    first = tokens(any_text)
    text._cache.clear()

    assert tokens(any_text) == first
    assert all(token and len(token) <= MAX_TOKEN for token in first)


def test_the_cache_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_CACHE_LIMIT", 10)
    tokens(" ".join(f"word{number}" for number in range(100)))
    for number in range(100):
        term_hash(f"word{number}")

    assert len(text._cache) <= 10
    assert len(text._hashes) <= 10


def test_threads_get_the_same_tokens_as_one() -> None:
    words = [" ".join(f"running{number}x{thread} houses" for number in range(300)) for thread in range(4)]
    alone = [tokens(given_text) for given_text in words]
    text._cache.clear()
    together: dict[int, list[str]] = {}
    threads = [
        threading.Thread(target=lambda place=place: together.__setitem__(place, tokens(words[place])))
        for place in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [together[place] for place in range(4)] == alone


def test_a_hash_is_64_bits_and_the_same_in_every_process() -> None:
    script = "from serve.text import term_hash; print(term_hash('数据'), term_hash('pdf'))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)

    assert result.stdout.split() == [str(term_hash("数据")), str(term_hash("pdf"))]
    assert 0 <= term_hash("pdf") < 2**64
    assert len({term_hash(f"word{number}") for number in range(10_000)}) == 10_000


def test_sentences_and_list_items_stand_alone_and_short_ones_are_left_out() -> None:
    given_text = "Convert the scanned contracts. Thanks!\n- Extract the signature dates\n3. ok; write a summary report"

    assert sentences(given_text) == [
        "Convert the scanned contracts.",
        "Extract the signature dates",
        "write a summary report",
    ]
