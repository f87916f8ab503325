"""The incremental truth table of references: for each kind of change exactly what is computed and removed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from pipeline.tasks.references import document
from tests.build.compare import store_rows
from tests.references.support import FAQ, GUIDE, DocsWorld
from tests.world import World

GUIDES = [
    "docs:guides/tides.md",
    "docs:guides/tides.md#columns",
    "docs:guides/tides.md#corrections",
    "docs:guides/tides.md#printing",
]
FAQS = ["docs:faq.md#why-is-the-tide-late", "docs:faq.md#which-map-do-i-need"]


@pytest.fixture
def world(tmp_path: Path) -> DocsWorld:
    """Skills, and two documents in the first of two sources of references. Built, and settled."""
    made = DocsWorld(tmp_path, "docs", "more")
    made.library()
    made.books()
    made.build()
    made.build()  # the second walk reads once more what was written within two seconds of the first
    return made


@pytest.mark.requirement("R101")
def test_each_heading_is_published_once(world: DocsWorld) -> None:
    assert list(world.sections()) == [*FAQS, *GUIDES]
    assert [(row["id"], row["title"]) for row in world.lines("references-documents.jsonl")] == [
        ("docs:faq.md", "Questions"),
        ("docs:guides/tides.md", "Tide tables"),
    ]
    assert (world.info["documents"], world.info["sections"], world.info["dimension"]) == (2, 6, 384)


def test_nothing_changed_runs_nothing(world: DocsWorld) -> None:
    before = world.generation

    assert world.counts() == {}
    assert world.generation == before


def test_a_touched_file_is_read_and_nothing_else_happens(world: DocsWorld) -> None:
    before = world.generation
    os.utime(world.folder() / "faq.md")

    assert world.counts() == {}
    assert world.generation == before


def test_an_edit_of_one_section_embeds_one_section(world: DocsWorld) -> None:
    world.document("guides/tides.md", GUIDE.replace("Add an hour", "Take an hour away"))

    assert world.counts() == {
        "document": (1, 0, 0),
        "section": (1, 0, 0),
        "terms": (1, 0, 0),
        "embed": (1, 0, 0),
    }


def test_a_line_more_at_the_top_moves_all_sections_and_embeds_the_first(world: DocsWorld) -> None:
    before = world.sections()
    world.document("guides/tides.md", GUIDE.replace("Tide tables tell", "Good to know.\n\nTide tables tell"))

    counts = world.counts()

    after = world.sections()
    assert counts["embed"] == counts["terms"] == (1, 0, 0)
    assert [after[name]["first"] - before[name]["first"] for name in GUIDES] == [0, 2, 2, 2]


def test_a_change_that_is_no_text_embeds_nothing(world: DocsWorld) -> None:
    world.document("guides/tides.md", GUIDE.replace("# Printing", "\n\n# Printing") + "\n\n")

    counts = world.counts()

    assert counts == {"document": (1, 0, 0), "section": (1, 0, 0)}


def test_a_new_title_is_part_of_what_every_section_says(world: DocsWorld) -> None:
    world.document("guides/tides.md", GUIDE.replace("title: Tide tables", "title: Water levels"))

    counts = world.counts()

    assert counts["embed"] == counts["terms"] == (4, 0, 0)


def test_a_renamed_file_embeds_and_cuts_nothing(world: DocsWorld) -> None:
    (world.folder() / "guides/tides.md").rename(world.folder() / "guides/water.md")

    counts = world.counts()

    assert counts == {
        "document": (1, 0, 1),
        "section": (0, 0, 4),
        "terms": (4, 0, 0),  # the words of the path are found by
    }
    assert [name for name in world.sections() if "guides" in name] == [
        name.replace("tides.md", "water.md") for name in GUIDES
    ]


def test_a_file_moved_to_another_source_embeds_nothing(world: DocsWorld) -> None:
    (world.folder() / "faq.md").rename(world.folder("more") / "faq.md")

    counts = world.counts()

    assert counts == {"document": (1, 0, 1), "section": (0, 0, 2)}
    assert "more:faq.md#which-map-do-i-need" in world.sections()


def test_a_deleted_file_leaves_in_one_run_and_comes_back_for_nothing(world: DocsWorld) -> None:
    kept = world.root / "kept.md"
    first = world.snapshot()
    (world.folder() / "faq.md").rename(kept)

    assert world.counts() == {"document": (0, 0, 1), "section": (0, 0, 2)}
    assert list(world.sections()) == GUIDES

    kept.rename(world.folder() / "faq.md")

    assert world.counts() == {"document": (1, 0, 0)}
    assert world.snapshot() == first


def test_the_same_text_in_two_files_is_embedded_once(world: DocsWorld) -> None:
    world.document("copy.md", FAQ, source="more")

    counts = world.counts()

    assert counts == {"document": (1, 0, 0), "terms": (2, 0, 0)}


def test_a_source_that_is_no_longer_configured_leaves_without_a_trace(world: DocsWorld) -> None:
    world.document("copy.md", FAQ, source="more")
    world.build()
    world.docs = ["docs"]
    world.configure()

    world.build()

    assert all(name.startswith("docs:") for name in world.sections())
    assert list(world.info["sources"]) == ["docs"]
    assert [path for path in (world.data / "build").rglob("*more*") if path.is_file()] == []


def test_without_a_source_of_references_nothing_of_them_is_left(world: DocsWorld) -> None:
    world.docs = []
    world.configure()

    world.build()

    assert not [name for name in world.snapshot() if name.startswith("references")]
    assert b'"references"' not in world.snapshot()["manifest.json"]
    assert [path for path in (world.data / "build").rglob("*docs*") if path.is_file()] == []


def test_a_library_without_references_is_published_as_if_there_were_no_such_kind(tmp_path: Path) -> None:
    plain = World(tmp_path / "plain")
    plain.library()
    report = plain.build()

    assert not {"document", "section"} & set(report.steps)
    assert not list((plain.data / "build").glob("document*"))
    assert "references" not in json.loads(plain.snapshot()["manifest.json"])


def test_references_alone_make_an_index(tmp_path: Path) -> None:
    world = DocsWorld(tmp_path, skills=())
    world.books()

    world.build()

    assert len(world.sections()) == 6
    assert world.references().answer("high water column")["results"]


def test_sections_are_in_no_lane_of_skills_nor_in_the_catalog_nor_in_the_store(world: DocsWorld) -> None:
    skills = [row["id"] for row in world.lines("records.jsonl")]

    assert all(name.startswith("main:") for name in skills)
    assert sorted(store_rows(world).ids) == sorted(skills)
    assert not [page for page in world.catalog() if "tides" in page or "faq" in page]
    assert json.loads(world.snapshot()["manifest.json"])["counts"].keys() == {"main"}


def test_an_edited_skill_leaves_the_references_files_as_they_are(world: DocsWorld) -> None:
    folder = world.data / "snapshots" / world.generation
    before = {path.name: path.stat().st_ino for path in folder.glob("references-*")}
    world.skill("sql-tuning", body="# Other\n\nAnother body about an SQL database.\n")

    counts = world.counts()

    folder = world.data / "snapshots" / world.generation
    assert not {"document", "section"} & set(counts)
    assert {path.name: path.stat().st_ino for path in folder.glob("references-*")} == before != {}


def test_globs_that_change_take_documents_out_and_in(world: DocsWorld) -> None:
    world.globs["docs"] = 'exclude = ["guides"]'
    world.configure()
    out = world.counts()
    world.globs = {}
    world.configure()
    back = world.counts()

    assert out == {"document": (0, 0, 1), "section": (0, 0, 4)}
    assert back == {"document": (1, 0, 0)}


def test_a_moved_source_cuts_and_embeds_nothing(world: DocsWorld) -> None:
    world.folder().rename(world.root / "docs-elsewhere")
    (world.root / "docs-docs").symlink_to(world.root / "docs-elsewhere")
    text = world.config.read_text(encoding="utf-8").replace("docs-docs", "docs-elsewhere")
    world.config.write_text(text, encoding="utf-8")

    counts = world.counts()

    assert counts == {}
    assert {row["root"] for row in world.sections().values()} == {str(world.root / "docs-elsewhere")}


def test_the_documents_of_a_folder_that_is_away_are_kept(world: DocsWorld) -> None:
    before = world.sections()
    world.folder().rename(world.root / "away")

    report = world.build()

    assert world.sections() == before
    assert [problem.kind for problem in report.problems] == ["source_missing"]
    assert "2 documents are kept" in report.problems[0].what

    (world.root / "away").rename(world.folder())
    assert world.build().problems == []


def test_files_that_cannot_be_indexed_are_problems_and_the_rest_is_indexed(
    world: DocsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "MAX_BYTES", 5_000)
    world.document("picture.md", b"\x89PNG\r\n\x1a\n" + bytes(100))
    world.document("huge.md", "x" * 6_000)
    world.document("fine.md", "# Fine\n\nStill here.\n")
    (world.folder() / "gone.md").symlink_to("nowhere.md")

    report = world.build()

    assert sorted((problem.kind, Path(problem.where).name) for problem in report.problems) == [
        ("dangling_link", "gone.md"),
        ("document_too_large", "huge.md"),
        ("not_text", "picture.md"),
    ]
    assert "docs:fine.md#fine" in world.sections()
    assert world.info["sources"]["docs"] | {"digest": ""} == {
        "path": str(world.folder()),
        "found": 6,
        "documents": 3,
        "problem": 3,
        "sections": 7,
        "bytes": len(GUIDE) + len(FAQ) + len("# Fine\n\nStill here.\n"),
        "digest": "",
    }


def test_an_edit_of_the_same_size_under_the_same_time_is_noticed(world: DocsWorld) -> None:
    path = world.folder() / "faq.md"
    stat = path.stat()
    path.write_text(FAQ.replace("Strong", "Steady"), encoding="utf-8")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size

    assert world.counts()["embed"] == (1, 0, 0)


def test_another_embedder_embeds_all_sections_again_and_cuts_by_its_own_measure(world: DocsWorld) -> None:
    from tests.embedder.loopback import EmbeddingServer

    server = EmbeddingServer()
    try:
        more = {
            "RETRIEVAL_EMBEDDER": "endpoint",
            "RETRIEVAL_EMBEDDING_URL": server.url,
            "RETRIEVAL_EMBEDDING_MODEL": "m",
        }
        counts = world.counts(**more)
    finally:
        server.close()

    assert counts["section"] == (2, 0, 0)
    assert counts["embed"] == (10, 0, 0)  # four skills, six sections
    assert "terms" not in counts
    assert (world.info["dimension"], world.info["counted_by"]) == (8, "rule-1")


@pytest.mark.parametrize(
    "lost", ["memo.sqlite3", "build/section", "build/document", "build/document-cache", "build/doit.json"]
)
def test_what_was_lost_is_made_again_byte_for_byte(world: DocsWorld, lost: str) -> None:
    before = world.snapshot()
    path = world.data / lost
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
        for more in ("-wal", "-shm"):
            path.with_name(path.name + more).unlink(missing_ok=True)
    world.document("faq.md", FAQ + "\nMore.\n")
    world.build()
    world.document("faq.md", FAQ)
    world.build()

    assert world.snapshot() == before


def test_a_document_that_changes_while_it_is_indexed_stops_the_build_with_the_next_step(
    world: DocsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.document("new.md", "# New\n\nOne.\n")

    def remember(_build: object, name: str, _memory: object) -> None:
        if name == "docs":  # the other source's turn may come before or after
            path.write_text("# New\n\nTwo.\n", encoding="utf-8")

    monkeypatch.setattr(document, "_remember", remember)

    with pytest.raises(Exception, match="a source changed while it was being indexed") as caught:
        world.build()

    assert "run `retrieval build` again" in str(caught.value)


def test_the_vectors_are_those_of_their_sections(world: DocsWorld) -> None:
    answer = world.references().answer("waterproof paper for printing", limit=1)

    assert answer["results"][0]["section"]["id"] == "docs:guides/tides.md#printing"
