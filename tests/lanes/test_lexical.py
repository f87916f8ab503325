"""The lexical lane against a slow reference, and its arrays against a rebuild."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.steps import terms
from serve.contract import LEXICAL_FIELDS, Descriptor
from serve.lanes import lexical, postings
from serve.text import term_hash, tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Words that are their own stems, so that the reference can count them as they stand.
WORDS = ("zip", "map", "fog", "red", "jam", "kit", "lab", "box", "数据", "gpt")
Texts = dict[str, str]

words = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
skills = st.lists(st.fixed_dictionaries(dict.fromkeys(LEXICAL_FIELDS, words)), min_size=1, max_size=8)
queries = st.lists(st.sampled_from((*WORDS, "unheard")), max_size=12).map(" ".join)


def item(texts: Mapping[str, str]) -> bytes:
    """An item with the given text in each field, packed without the step's own choice of fields."""
    counted: dict[int, bytearray] = {}
    for field, name in enumerate(LEXICAL_FIELDS):
        for token in tokens(texts.get(name, "")):
            counted.setdefault(term_hash(token), bytearray(len(LEXICAL_FIELDS)))[field] += 1
    hashes = sorted(counted)
    counts = np.frombuffer(b"".join(counted[term] for term in hashes), dtype=np.uint8)
    return postings.pack_item(
        np.array(hashes, dtype=np.uint64), counts, [len(tokens(texts.get(name, ""))) for name in LEXICAL_FIELDS]
    )


def index(corpus: Sequence[Mapping[str, str]]) -> lexical.LexicalIndex:
    return lexical.LexicalIndex(postings.assemble([item(texts) for texts in corpus]))


def reference(corpus: Sequence[Mapping[str, str]], query: str) -> dict[int, float]:
    """BM25F written down as in the textbook: scores of the rows with at least one term."""
    fields = [[text.get(name, "").split() for name in LEXICAL_FIELDS] for text in corpus]
    averages = []
    for field in range(len(LEXICAL_FIELDS)):
        having = [len(row[field]) for row in fields if row[field]]
        averages.append(sum(having) / len(having) if having else 1.0)
    scores: dict[int, float] = {}
    for term, repeats in Counter(query.split()).items():
        holding = sum(any(term in words_of for words_of in row) for row in fields)
        if not holding:
            continue
        idf = math.log(1 + (len(fields) - holding + 0.5) / (holding + 0.5))
        for number, row in enumerate(fields):
            weight = 0.0
            for field, words_of in enumerate(row):
                share = lexical.LENGTHS[field]
                norm = 1 - share + share * len(words_of) / averages[field]
                weight += lexical.WEIGHTS[field] * words_of.count(term) / norm
            if weight:
                gain = idf * (1 + math.log(repeats)) * weight * (lexical.K1 + 1) / (weight + lexical.K1)
                scores[number] = scores.get(number, 0.0) + gain
    return scores


@settings(deadline=None)
@given(skills, queries)
def test_scores_equal_the_textbook_formula(corpus: list[Texts], query: str) -> None:
    hits = index(corpus).search(query, len(corpus))
    expected = reference(corpus, query)

    assert set(hits.rows.tolist()) == set(expected)
    assert hits.scores == pytest.approx([expected[row] for row in hits.rows.tolist()], rel=1e-5)
    assert list(zip(hits.scores, hits.rows, strict=True)) == sorted(
        zip(hits.scores, hits.rows, strict=True), key=lambda pair: (-pair[0], pair[1])
    )


@settings(deadline=None)
@given(skills, queries, st.integers(0, 9), st.data())
def test_a_filtered_short_answer_is_the_full_one_with_rows_left_out(
    corpus: list[Texts], query: str, count: int, data: st.DataObject
) -> None:
    lane = index(corpus)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(corpus), max_size=len(corpus))), dtype=np.bool_)
    full = lane.search(query, len(corpus))
    kept = [(row, score) for row, score in zip(full.rows.tolist(), full.scores.tolist(), strict=True) if mask[row]]
    hits = lane.search(query, count, mask)

    assert list(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True)) == kept[:count]


@settings(deadline=None)
@given(skills, queries)
def test_the_explanation_adds_up_to_the_score(corpus: list[Texts], query: str) -> None:
    lane = index(corpus)
    hits = lane.search(query, len(corpus))

    for row, score in zip(hits.rows.tolist(), hits.scores.tolist(), strict=True):
        assert sum(part.score for part in lane.explain(query, row)) == pytest.approx(score)
    for row in set(range(len(corpus))) - set(hits.rows.tolist()):
        assert lane.explain(query, row) == []


def test_the_explanation_names_terms_and_fields() -> None:
    lane = index([{"name": "fog", "head": "fog fog map"}, {"name": "map"}])
    (part,) = lane.explain("fog fog", 0)

    assert (part.term, part.repeats, lexical.fields(part.counts)["name"], lexical.fields(part.counts)["head"]) == (
        "fog",
        2,
        1,
        2,
    )


def test_equal_skills_are_ordered_by_row_even_at_the_cut() -> None:
    lane = index([{"name": "box"}, *[{"name": "fog", "description": "red jam kit"}] * 9])

    assert lane.search("fog jam red", 4).rows.tolist() == [1, 2, 3, 4]
    assert len(set(lane.search("fog jam red", 9).scores.tolist())) == 1


def test_a_word_in_the_name_weighs_more_than_the_same_word_in_the_body() -> None:
    lane = index([{"body": "fog", "name": "box"}, {"name": "fog", "body": "box"}])

    assert lane.search("fog", 2).rows.tolist() == [1, 0]


def test_nothing_is_found_without_a_known_word() -> None:
    lane = index([{"name": "fog"}])

    assert [len(lane.search(query, 5).rows) for query in ("", "the of", "unheard", "?!")] == [0, 0, 0, 0]
    assert len(lexical.LexicalIndex(postings.assemble([])).search("fog", 5).rows) == 0


def test_a_long_query_keeps_its_rarest_words() -> None:
    common = [f"filler{number}" for number in range(lexical.MAX_TERMS + 20)]
    corpus = [{"body": " ".join(common)}] * 5 + [{"body": "fog"}]
    lane = index(corpus)
    hits = lane.search(" ".join([*common, "fog"]), 6)

    assert hits.rows.tolist()[-1] == 5
    assert len(lane.explain(" ".join([*common, "fog"]), 0)) == lexical.MAX_TERMS - 1


def equal(left: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray]) -> bool:
    return set(left) == set(right) == set(postings.NAMES) and all(
        left[name].dtype == right[name].dtype and np.array_equal(left[name], right[name]) for name in left
    )


@settings(deadline=None, max_examples=200)
@given(skills, skills, st.data())
def test_changed_arrays_equal_a_clean_assembly(before: list[Texts], fresh: list[Texts], data: st.DataObject) -> None:
    old = [item(texts) for texts in before]
    new = [item(texts) for texts in fresh]
    kept = data.draw(st.lists(st.sampled_from(range(len(old))), unique=True, max_size=len(old)))
    slots: list[tuple[str, int]] = [("old", place) for place in kept] + [("new", place) for place in range(len(new))]
    slots = data.draw(st.permutations(slots))
    rows = np.full(len(old), -1, dtype=np.int64)
    added: dict[int, bytes] = {}
    for row, (kind, place) in enumerate(slots):
        if kind == "old":
            rows[place] = row
        else:
            added[row] = new[place]
    wanted = postings.assemble([old[place] if kind == "old" else new[place] for kind, place in slots])

    assert equal(postings.replace(postings.assemble(old), rows, added, len(slots)), wanted)


@pytest.mark.parametrize(
    ("rows", "added", "total"),
    [
        pytest.param([0, 0], {}, 2, id="two old skills in one row"),
        pytest.param([0, -1], {}, 2, id="a row that nobody fills"),
        pytest.param([0, 1], {1: b""}, 2, id="a row that is filled twice"),
        pytest.param([0], {1: b""}, 2, id="an old skill that is not mentioned"),
        pytest.param([0, 5], {}, 2, id="a row beyond the end"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows: list[int], added: dict[int, bytes], total: int) -> None:
    old = postings.assemble([item({"name": "fog"}), item({"name": "map"})])
    given_items = {row: item({"name": "jam"}) for row in added}

    with pytest.raises(ValueError, match="exactly once"):
        postings.replace(old, np.array(rows, dtype=np.int64), given_items, total)


def test_the_last_skill_can_go() -> None:
    old = postings.assemble([item({"name": "fog"})])

    assert equal(postings.replace(old, np.array([-1]), {}, 0), postings.assemble([]))


def test_arrays_read_from_files_answer_alike(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("arrays")
    arrays = postings.assemble([item({"name": "fog", "body": "map jam"}), item({"name": "map"})])
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    mapped = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in arrays}
    fresh = lexical.LexicalIndex(arrays).search("map fog", 2)
    read = lexical.LexicalIndex(mapped).search("map fog", 2)

    assert (read.rows.tolist(), read.scores.tolist()) == (fresh.rows.tolist(), fresh.scores.tolist())
    assert equal(
        postings.replace(mapped, np.array([1, 0]), {}, 2),
        postings.assemble([item({"name": "map"}), item({"name": "fog", "body": "map jam"})]),
    )


def test_words_of_the_limits_do_not_find_a_skill() -> None:
    made = Descriptor(name="box", purpose="fog", triggers=(), limits=("red",), headings=(), head="", short="box. fog")
    lane = lexical.LexicalIndex(postings.assemble([terms.make(made, ["kit"])]))

    assert [len(lane.search(word, 1).rows) for word in ("box", "fog", "kit", "red")] == [1, 1, 1, 0]
