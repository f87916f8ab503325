"""The lexical item of one skill: which words stand in which field, and how they are packed."""

from __future__ import annotations

import numpy as np

from pipeline.steps import descriptor, terms
from serve.contract import LEXICAL_FIELDS, Descriptor
from serve.lanes import postings
from serve.text import term_hash, tokens


def skill(**changes: object) -> Descriptor:
    empty: dict[str, object] = {
        "name": "",
        "purpose": "",
        "triggers": (),
        "limits": (),
        "headings": (),
        "head": "",
        "short": "",
    }
    return Descriptor(**(empty | changes))


def counts(item: bytes) -> dict[int, dict[str, int]]:
    """Counts by hash and field, read back through the index."""
    arrays = postings.assemble([item])
    return {
        int(term): {field: int(count) for field, count in zip(LEXICAL_FIELDS, row, strict=True) if count}
        for term, row in zip(arrays["terms"], arrays["tf"], strict=True)
    }


def lengths(item: bytes) -> dict[str, int]:
    return dict(zip(LEXICAL_FIELDS, postings.assemble([item])["lengths"][0].tolist(), strict=True))


def test_each_text_is_counted_in_its_own_field() -> None:
    made = skill(
        name="alpha", purpose="beta beta", triggers=("gamma",), headings=("delta", "delta"), head="epsilon zeta"
    )
    item = terms.make(made, ["eta"])

    assert counts(item) == {
        term_hash("alpha"): {"name": 1},
        term_hash("beta"): {"description": 2},
        term_hash("gamma"): {"triggers": 1},
        term_hash("eta"): {"triggers": 1},
        term_hash(tokens("delta")[0]): {"headings": 2},
        term_hash(tokens("epsilon")[0]): {"head": 1},
        term_hash("zeta"): {"head": 1},
    }
    assert lengths(item) == {"name": 1, "description": 2, "triggers": 2, "headings": 2, "head": 2, "body": 0}


def test_limits_are_not_indexed() -> None:
    assert counts(terms.make(skill(name="alpha", limits=("omega",)), [])) == {term_hash("alpha"): {"name": 1}}


def test_a_trigger_that_stands_in_for_the_purpose_is_counted_once() -> None:
    made = skill(purpose="merge files", triggers=("merge files", "split"))

    assert counts(terms.make(made, []))[term_hash("merg")] == {"description": 1}


def test_the_body_begins_at_a_space_after_the_head() -> None:
    made = skill(head="word " * 199 + "boundary " + "tail " * 100)
    found = counts(terms.make(made, []))

    assert found[term_hash("word")] == {"head": 199}
    assert found[term_hash(tokens("boundary")[0])] == {"body": 1}
    assert found[term_hash("tail")] == {"body": 100}


def test_a_head_without_spaces_is_cut_where_it_stands() -> None:
    lengths_found = lengths(terms.make(skill(head="字" * 1_500), []))

    assert (lengths_found["head"], lengths_found["body"]) == (999, 499)


def test_counts_and_lengths_stop_at_their_greatest_value() -> None:
    item = terms.make(skill(headings=("alpha " * 70_000,)), [])

    assert counts(item) == {term_hash("alpha"): {"headings": postings.MAX_COUNT}}
    assert lengths(item)["headings"] == postings.MAX_LENGTH


def test_an_item_is_laid_out_as_documented() -> None:
    item = terms.make(skill(name="beta alpha beta"), [])
    fields = len(LEXICAL_FIELDS)
    start = 4 + 2 * fields
    hashes = np.frombuffer(item, "<u8", 2, start)

    assert item[:4] == (2).to_bytes(4, "little")
    assert np.frombuffer(item, "<u2", fields, 4).tolist() == [3, 0, 0, 0, 0, 0]
    assert hashes.tolist() == sorted([term_hash("alpha"), term_hash("beta")])
    assert np.frombuffer(item, np.uint8, offset=start + 16).reshape(2, fields)[:, 0].tolist() == [
        2 if term == term_hash("beta") else 1 for term in hashes.tolist()
    ]


def test_a_skill_without_words_has_an_item_without_terms() -> None:
    item = terms.make(descriptor.make("", "", [], [], ""), [])

    assert counts(item) == {}
    assert set(lengths(item).values()) == {0}
