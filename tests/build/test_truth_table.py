"""The incremental truth table: for each kind of change exactly what runs, is written and is removed. Counted, never argued.

A row: what is done to a built world, and per step (computed, written, removed) of the next build. Steps that are not named did nothing:
their tasks were current or their items came from the memo. `select` looks at all skills and `publish` is one task, so neither is counted
here; whether a new generation came out is the last column.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.world import World

Counts = dict[str, tuple[int, int, int]]

# One skill made, or made again, from its text to its row.
FRESH: Counts = {"scan": (1, 0, 0), "categorize": (1, 0, 0), "descriptor": (1, 0, 0), "terms": (1, 0, 0)}
INDEX_AND_SOURCE_PAGES = 1  # hub pages that name a skill: those of its source and its categories


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two sources; the first holds the four skills of the little library. Built once."""
    made = World(tmp_path, "main", "side")
    made.library()
    made.build()
    made.build()  # the second scan reads once more what was written within two seconds of the first
    return made


def computed(counts: Counts, step: str) -> int:
    return counts.get(step, (0, 0, 0))[0]


def path_of(world: World, name: str = "sql-tuning") -> Path:
    return world.lib("main") / name / "SKILL.md"


def test_nothing_changed_runs_nothing(world: World) -> None:
    before = world.generation

    assert world.counts() == {}
    assert world.generation == before


def test_a_touched_file_is_read_and_nothing_else_happens(world: World) -> None:
    os.utime(path_of(world))

    assert world.counts() == {}


def test_an_edited_body_reaches_the_lexical_lane_and_the_card_but_not_the_model(world: World) -> None:
    before = world.generation
    path_of(world).write_text(
        path_of(world).read_text(encoding="utf-8").replace("twice", "three times"), encoding="utf-8"
    )

    counts = world.counts()

    assert counts == {
        **FRESH,
        "card": (1, 1, 0),
        "upsert": (1, 1, 0),  # the row carries the file's digest
    }
    assert world.generation != before


def test_an_edit_beyond_the_indexed_head_stops_at_the_digest(world: World) -> None:
    text = "# Long\n\n" + "An SQL database query plan explained at length. " * 200
    world.skill("long", body=text)
    world.build()
    world.skill("long", body=text + "One more sentence at the very end.")

    counts = world.counts()

    assert computed(counts, "scan") == computed(counts, "upsert") == 1
    assert "embed" not in counts
    assert "card" not in counts


def test_a_new_name_is_embedded_once_and_rewrites_the_pages_that_link_it(world: World) -> None:
    world.skill("sql-tuning", name="Query plans")

    counts = world.counts()

    assert {step: counts[step] for step in FRESH} == FRESH
    assert counts["embed"] == (1, 0, 0)
    assert counts["card"] == (1, 1, 0)
    assert counts["upsert"] == (1, 1, 0)
    assert counts["hub"][0] >= 2


def test_a_changed_bundled_file_changes_the_record_and_nothing_that_is_computed(world: World) -> None:
    before = world.generation
    (world.lib("main") / "pod-audit" / "notes.md").write_text("other notes\n", encoding="utf-8")

    assert world.counts() == {}
    assert world.generation != before


def test_an_edit_of_the_same_size_under_the_same_time_is_noticed(world: World) -> None:
    path = path_of(world)
    stat = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("twice", "never"), encoding="utf-8")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size

    assert computed(world.counts(), "scan") == 1


def test_a_renamed_folder_moves_the_skill_without_embedding_it(world: World) -> None:
    (world.lib("main") / "sql-tuning").rename(world.lib("main") / "moved")

    counts = world.counts()

    assert "embed" not in counts
    assert counts["card"] == (1, 1, 1)
    assert counts["upsert"] == (1, 1, 1)


def test_a_deleted_skill_leaves_catalog_store_and_snapshot_in_one_run(world: World) -> None:
    shutil.rmtree(world.lib("main") / "sql-tuning")

    counts = world.counts()

    assert {step: counts.get(step) for step in ("scan", "descriptor", "embed", "card", "upsert")} == {
        "scan": None,
        "descriptor": None,
        "embed": None,
        "card": (0, 0, 1),
        "upsert": (0, 0, 1),
    }
    assert b"sql-tuning" not in world.snapshot()["records.jsonl"]


def test_a_skill_that_comes_back_is_not_computed_again(world: World) -> None:
    kept = world.root / "kept"
    (world.lib("main") / "sql-tuning").rename(kept)
    first = world.snapshot()
    world.build()
    kept.rename(world.lib("main") / "sql-tuning")

    counts = world.counts()

    assert counts == {"card": (1, 1, 0), "hub": counts["hub"], "upsert": (1, 1, 0)}
    assert world.snapshot().keys() == first.keys()


def test_a_skill_moved_to_another_source_is_not_embedded_again(world: World) -> None:
    (world.lib("main") / "sql-tuning").rename(world.lib("side") / "sql-tuning")

    counts = world.counts()

    assert not counts.keys() & {"embed", "categorize", "scan", "descriptor", "terms"}
    assert counts["upsert"] == (1, 1, 1)
    assert counts["card"] == (1, 1, 1)


def test_a_duplicate_appears_and_its_winner_goes(world: World) -> None:
    shutil.copytree(world.lib("main") / "sql-tuning", world.lib("side") / "sql-tuning")
    appeared = world.counts()
    assert appeared.keys() <= {"card", "upsert", "hub"}
    assert b'"duplicates":["side:sql-tuning"]' in world.snapshot()["records.jsonl"]

    shutil.rmtree(world.lib("main") / "sql-tuning")
    gone = world.counts()

    assert not gone.keys() & {"embed", "descriptor", "terms"}
    assert gone["upsert"] == (1, 1, 1)
    assert b'"id":"side:sql-tuning"' in world.snapshot()["records.jsonl"]


def test_a_comment_in_the_taxonomy_changes_nothing(world: World) -> None:
    world.taxonomy.write_text("# a remark\n" + world.taxonomy.read_text(encoding="utf-8"), encoding="utf-8")

    assert world.counts() == {}


def test_a_new_keyword_categorizes_again_and_reaches_only_what_it_changes(world: World) -> None:
    text = world.taxonomy.read_text(encoding="utf-8")
    world.taxonomy.write_text(text.replace("keywords = [", 'keywords = ["zzyzx",', 1), encoding="utf-8")

    counts = world.counts()

    assert counts["categorize"] == (4, 0, 0)
    assert not counts.keys() & {"scan", "descriptor", "embed", "card", "terms", "upsert"}


def test_a_new_category_moves_its_skills_and_embeds_nothing(world: World) -> None:
    extra = (
        '\n[[categories]]\nid = "row-wrangling"\nlabel = "Row wrangling"\nkeywords = ["csv-cleaning", "broken rows"]\n'
    )
    world.taxonomy.write_text(world.taxonomy.read_text(encoding="utf-8") + extra, encoding="utf-8")

    counts = world.counts()

    assert counts["categorize"] == (4, 0, 0)
    assert counts["card"] == (1, 1, 0)
    assert counts["upsert"] == (1, 1, 0)
    assert not counts.keys() & {"scan", "descriptor", "embed", "terms"}


def test_an_override_is_added_and_removed_at_the_price_of_one_skill(world: World) -> None:
    world.overrides.write_text('[skills]\n"main:sql-tuning" = ["media"]\n', encoding="utf-8")
    added = world.counts()
    assert added["categorize"] == (1, 0, 0)
    assert added["card"] == (1, 1, 0)
    assert not added.keys() & {"scan", "descriptor", "embed", "terms"}

    world.overrides.unlink()
    removed = world.counts()

    assert "categorize" not in removed  # what it was before is still in the memo
    assert removed["card"] == (1, 1, 0)


def test_a_changed_policy_reaches_only_skills_that_wait_for_review(world: World) -> None:
    world.skill("odd", "Qwx plmb zzt.", "Vrrp klm nnt. " * 30)
    world.build()
    assert b"main:odd" not in world.snapshot()["records.jsonl"]
    world.policy = "index"
    world.configure()

    counts = world.counts()

    assert counts["embed"] == (1, 0, 0)
    assert counts["upsert"] == (1, 1, 0)
    assert "scan" not in counts


def test_another_state_of_a_source_rewrites_records_and_computes_no_text(world: World) -> None:
    world.config.write_text(
        world.config.read_text(encoding="utf-8").replace('"cold"', '"archived"', 1), encoding="utf-8"
    )

    counts = world.counts()

    assert counts["card"] == (4, 4, 0)
    assert counts["upsert"] == (4, 4, 0)
    assert not counts.keys() & {"scan", "categorize", "descriptor", "embed", "terms"}


def test_a_source_that_is_no_longer_configured_leaves_in_one_run(world: World) -> None:
    world.skill("release-notes", source="side")
    world.build()
    world.sources.remove("main")
    world.configure()

    counts = world.counts()

    assert counts["upsert"][2] == 4
    assert sorted(path for path in world.catalog() if path.startswith("skills/main/")) == []


@pytest.mark.requirement("R221", "R222")
def test_a_source_whose_folder_is_away_keeps_its_skills_and_says_so(world: World) -> None:
    before = world.snapshot()["records.jsonl"]
    world.lib("main").rename(world.root / "away")

    report = world.build()

    assert world.snapshot()["records.jsonl"] == before
    assert [(row.kind, "4 skills are kept" in row.what) for row in report.problems] == [("source_missing", True)]

    (world.root / "away").rename(world.lib("main"))
    assert world.counts() == {}
    assert world.build().problems == []


def test_another_embedder_embeds_everything_and_reads_nothing_again(world: World) -> None:
    counts = world.counts(RETRIEVAL_EMBEDDING_PASSAGE_PREFIX="passage: ")

    assert counts["embed"] == (4, 0, 0)
    assert counts["upsert"] == (4, 4, 0)
    assert not counts.keys() & {"scan", "categorize", "descriptor", "terms", "card"}


def test_a_lost_memo_costs_nothing_until_something_changes(world: World) -> None:
    before = world.snapshot()
    for path in world.data.glob("memo.sqlite3*"):
        path.unlink()
    assert world.counts() == {}

    world.skill("sql-tuning", body="# SQL\n\nAnother text about an SQL database. " * 9)
    counts = world.counts()

    assert computed(counts, "scan") == 1
    assert counts["upsert"][1] == 1
    assert world.snapshot().keys() == before.keys()


def test_a_lost_doit_database_runs_tasks_and_computes_no_item(world: World) -> None:
    before = world.generation
    (world.data / "build" / "doit.json").unlink()

    report = world.build()

    assert report.steps["categorize"].tasks_run == 2
    assert not any(count.executed for name, count in report.steps.items() if name not in {"select", "publish"})
    assert world.generation == before


@pytest.mark.parametrize("damage", [b"", b"{", b"\x00\xff"])
def test_a_damaged_doit_database_is_begun_anew(world: World, damage: bytes) -> None:
    (world.data / "build" / "doit.json").write_bytes(damage)

    assert world.counts() == {}


def test_a_lost_store_is_written_again_from_kept_vectors(world: World) -> None:
    shutil.rmtree(world.data / "chroma")

    assert world.counts() == {"upsert": (4, 4, 0)}


def test_a_dropped_collection_is_written_again_from_kept_vectors(world: World) -> None:
    import chromadb

    client = chromadb.PersistentClient(
        str(world.data / "chroma"), settings=chromadb.Settings(anonymized_telemetry=False)
    )
    (collection,) = client.list_collections()
    client.delete_collection(collection.name)

    assert world.counts() == {"upsert": (4, 4, 0)}


def test_a_row_changed_in_the_store_by_hand_is_put_right(world: World) -> None:
    import chromadb

    client = chromadb.PersistentClient(
        str(world.data / "chroma"), settings=chromadb.Settings(anonymized_telemetry=False)
    )
    (collection,) = client.list_collections()
    collection.update(ids=["main:sql-tuning"], metadatas=[{"name": "mine now"}])

    assert world.counts() == {"upsert": (1, 1, 0)}
    assert world.counts() == {}


def test_a_card_edited_by_hand_is_put_right(world: World) -> None:
    before = world.catalog()
    card = next(path for path in (world.data / "catalog" / "skills").rglob("*.md") if "sql-tuning" in path.name)
    card.write_text("mine now\n", encoding="utf-8")

    assert world.counts() == {"card": (1, 1, 0)}
    assert world.catalog() == before


def test_a_page_put_into_the_catalog_by_hand_is_taken_out(world: World) -> None:
    before = world.catalog()
    (world.data / "catalog" / "skills" / "main" / "stray.md").write_text("# stray\n", encoding="utf-8")

    assert world.counts() == {"tidy": (0, 0, 1)}
    assert world.catalog() == before


def test_a_deleted_snapshot_is_published_again_as_it_was(world: World) -> None:
    before = world.snapshot()
    shutil.rmtree(world.data / "snapshots")

    assert world.counts() == {}
    assert world.snapshot() == before


def test_a_damaged_snapshot_file_is_published_again_as_it_was(world: World) -> None:
    before = world.snapshot()
    path = world.data / "snapshots" / world.generation / "vectors.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")

    assert world.counts() == {}
    assert world.snapshot() == before


def test_a_manifest_edited_by_hand_is_made_again(world: World) -> None:
    before = world.snapshot()
    path = world.data / "build" / "descriptor" / "main.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"short":"', b'"short":"0', 1))

    world.build()

    assert world.snapshot() == before


Edit = Callable[[str], str]


@pytest.mark.parametrize(
    ("module", "edit", "steps"),
    [
        ("pipeline/steps/categorize.py", lambda text: text + "\n# a remark\n", {"categorize"}),
        ("pipeline/steps/descriptor.py", lambda text: text + "\n# a remark\n", {"descriptor"}),
        ("pipeline/steps/terms.py", lambda text: text + "\n# a remark\n", {"terms"}),
        ("pipeline/steps/card.py", lambda text: text + "\n# a remark\n", {"card"}),
        ("pipeline/steps/upsert.py", lambda text: text + "\n# a remark\n", {"upsert"}),
        ("pipeline/reader/reader.py", lambda text: text + "\n# a remark\n", {"scan"}),
        ("pipeline/steps/select.py", lambda text: text + "\n# a remark\n", set()),
    ],
)
@pytest.mark.requirement("R214")
def test_changed_code_runs_its_step_again_and_is_cut_off_where_results_are_equal(
    world: World, monkeypatch: pytest.MonkeyPatch, module: str, edit: Edit, steps: set[str]
) -> None:
    from pipeline.engine import code

    real = code.source_of

    def changed(name: str) -> bytes:
        data = real(name)
        return edit(data.decode()).encode() if name == module.removesuffix(".py").replace("/", ".") else data

    monkeypatch.setattr(code, "source_of", changed)
    code.digest.cache_clear()
    before = world.generation
    try:
        counts = world.counts()
    finally:
        code.digest.cache_clear()

    assert {step for step, count in counts.items() if count[0]} == steps
    assert world.generation == before
