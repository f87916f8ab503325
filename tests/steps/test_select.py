"""Select: one status for every found skill, and the reason for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import Categorized, Found, Selected
from pipeline.steps.select import Origin, alike, decide, packed

if TYPE_CHECKING:
    from collections.abc import Sequence


def skill(source: str, folder: str, *, name: str = "", body: str = "", **values: object) -> Found:
    text = body or f"body of {source}:{folder}"
    defaults: dict[str, object] = {
        "id": f"{source}:{folder}",
        "source": source,
        "folder": folder,
        "path": f"/{source}/{folder}/SKILL.md",
        "name": name or folder,
        "description": f"about {folder}",
        "tags": (),
        "categories": (),
        "hidden": False,
        "digest": "d",
        "key": "k",
        "reading": "r",
        "body_digest": text,
        "body_chars": 1000,
        "sketch": b"",
        "package_digest": "p",
        "files": 0,
        "bytes": 10,
    }
    values["sketch"] = packed(values.get("sketch", ()))  # type: ignore[arg-type]
    return Found(**{**defaults, **values})  # type: ignore[arg-type]


def origin(name: str, order: int = 0, *, state: str = "cold", harness: str = "", group: str = "") -> Origin:
    return Origin(name, state, harness, group, order)


def decided(
    found: Sequence[Found], *origins: Origin, uncategorized: str = "review", bare: Sequence[str] = ()
) -> dict[str, Selected]:
    categorized = {
        item.id: Categorized(id=item.id, categories=() if item.id in bare else ("data",), evidence=()) for item in found
    }
    rows = decide(found, categorized, {item.name: item for item in origins}, uncategorized)
    return {row.id: row for row in rows}


def test_a_native_skill_is_suppressed_and_says_where_it_is_shown() -> None:
    rows = decided([skill("home", "pdf")], origin("home", state="native", harness="hermes"))

    assert rows["home:pdf"].status == "suppressed"
    assert "hermes" in rows["home:pdf"].reason
    assert rows["home:pdf"].record is None


@pytest.mark.requirement("R011", "R064")
def test_a_native_name_suppresses_its_cold_twin_in_that_harness_only() -> None:
    rows = decided(
        [skill("home", "pdf"), skill("lib", "x/pdf", name="PDF"), skill("lib", "csv")],
        origin("home", state="native", harness="omp"),
        origin("lib", 1),
    )

    twin = rows["lib:x/pdf"].record
    assert twin is not None
    assert twin.native_in == ("omp",)
    other = rows["lib:csv"].record
    assert other is not None
    assert other.native_in == ()


def test_a_native_body_suppresses_its_renamed_cold_copy_in_that_harness_only() -> None:
    rows = decided(
        [skill("home", "pdf", body="same"), skill("lib", "portable-documents", body="same")],
        origin("home", state="native", harness="omp"),
        origin("lib", 1),
    )

    record = rows["lib:portable-documents"].record
    assert record is not None
    assert record.native_in == ("omp",)


def test_a_native_skill_without_a_harness_suppresses_its_twin_everywhere() -> None:
    rows = decided([skill("home", "pdf"), skill("lib", "pdf")], origin("home", state="native"), origin("lib", 1))

    assert rows["lib:pdf"].status == "suppressed"


@pytest.mark.requirement("R013", "R063")
def test_a_hidden_skill_of_a_native_tree_is_indexed_and_knows_its_harness() -> None:
    rows = decided([skill("home", "pdf", hidden=True)], origin("home", state="native", harness="omp"))

    record = rows["home:pdf"].record
    assert record is not None
    assert (record.state, record.hidden_in, record.native_in) == ("hidden", ("omp",), ())


def test_the_hide_flag_changes_nothing_in_a_cold_library() -> None:
    rows = decided([skill("lib", "pdf", hidden=True)], origin("lib"))

    record = rows["lib:pdf"].record
    assert record is not None
    assert record.state == "cold"


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (skill("a", "x", path="/p"), skill("b", "y", path="/p"), "same file"),
        (skill("a", "x", path="/p"), skill("b", "y", aliases=("/p",)), "same file"),
        (skill("a", "x", body="same"), skill("b", "y", body="same"), "same text"),
        (skill("a", "x", sketch=tuple(range(32))), skill("b", "x", sketch=tuple(range(1, 33))), "nearly the same"),
        (skill("g1", "x"), skill("g2", "X"), "same name within group"),
    ],
)
@pytest.mark.requirement("R208")
def test_a_repeated_skill_is_a_duplicate_of_the_one_configured_first(one: Found, other: Found, reason: str) -> None:
    origins = [origin("a"), origin("b", 1), origin("g1", 2, group="g"), origin("g2", 3, group="g")]
    rows = decided([other, one], *origins)

    loser = rows[other.id]
    assert (loser.status, loser.winner) == ("duplicate", one.id)
    assert reason in loser.reason
    winner = rows[one.id].record
    assert winner is not None
    assert winner.duplicates == (other.id,)


def test_two_different_skills_that_share_a_name_both_stay() -> None:
    rows = decided(
        [skill("a", "review", sketch=tuple(range(32))), skill("b", "review", sketch=tuple(range(100, 132)))],
        origin("a"),
        origin("b", 1),
    )

    assert [row.status for row in rows.values()] == ["indexed", "indexed"]


def test_stubs_with_one_body_but_other_descriptions_are_not_duplicates() -> None:
    rows = decided(
        [skill("a", "x", body="see the docs", body_chars=12), skill("a", "y", body="see the docs", body_chars=12)],
        origin("a"),
    )

    assert [row.status for row in rows.values()] == ["indexed", "indexed"]


def test_a_hidden_copy_wins_over_a_cold_one_and_a_cold_one_over_an_archived_one() -> None:
    found = [skill("cold", "x", body="t"), skill("arch", "x", body="t"), skill("hid", "x", body="t")]
    rows = decided(
        found, origin("arch", 0, state="archived"), origin("cold", 1), origin("hid", 2, state="hidden", harness="omp")
    )

    assert {key: row.status for key, row in rows.items()} == {
        "cold:x": "duplicate",
        "arch:x": "duplicate",
        "hid:x": "indexed",
    }
    assert rows["cold:x"].winner == rows["arch:x"].winner == "hid:x"


def test_a_skill_without_a_category_waits_for_review_or_is_indexed_by_policy() -> None:
    found = [skill("lib", "odd")]

    assert decided(found, origin("lib"), bare=["lib:odd"])["lib:odd"].status == "review"
    record = decided(found, origin("lib"), bare=["lib:odd"], uncategorized="index")["lib:odd"].record
    assert record is not None
    assert record.categories == ("uncategorized",)


def test_a_winner_without_a_category_takes_its_duplicates_category() -> None:
    found = [skill("a", "x", body="t"), skill("b", "x", body="t")]
    rows = decided(found, origin("a"), origin("b", 1), bare=["a:x"])

    record = rows["a:x"].record
    assert record is not None
    assert record.categories == ("data",)


def test_sketches_estimate_the_share_of_common_shingles() -> None:
    one, half = skill("a", "x", sketch=tuple(range(32))), skill("a", "y", sketch=tuple(range(16, 48)))

    assert alike(one, one) == 1.0
    assert alike(one, half) == 0.5
    assert alike(one, skill("a", "z")) == 0.0


names = st.sampled_from(["x", "y", "z"])
found_skills = st.lists(
    st.builds(
        lambda source, folder, name, body, hidden: skill(source, folder, name=name, body=body, hidden=hidden),
        st.sampled_from(["a", "b", "n"]),
        st.sampled_from(["p", "q", "r/s", "t"]),
        names,
        st.sampled_from(["one", "two", "three"]),
        st.booleans(),
    ),
    max_size=10,
    unique_by=lambda item: item.id,
)


@given(found_skills)
def test_every_found_skill_has_one_status_and_duplicates_point_at_skills_that_are_not_duplicates(
    found: list[Found],
) -> None:
    origins = [origin("a", group="g"), origin("b", 1), origin("n", 2, state="native", harness="omp")]
    rows = decided(found, *origins)

    assert rows.keys() == {item.id for item in found}
    for row in rows.values():
        assert row.status in {"indexed", "duplicate", "suppressed", "review"}
        assert (row.record is not None) == (row.status == "indexed")
        assert bool(row.reason) == (row.status != "indexed")
        if row.status == "duplicate":
            assert rows[row.winner].status != "duplicate"


@given(found_skills, st.randoms())
@pytest.mark.requirement("R209")
def test_the_order_in_which_skills_were_found_decides_nothing(found: list[Found], random: object) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    origins = [origin("a", group="g"), origin("b", 1), origin("n", 2, state="native", harness="omp")]

    assert decided(found, *origins) == decided(shuffled, *origins)
