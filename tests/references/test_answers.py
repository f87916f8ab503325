"""Answers from references: what a hit says of itself, and how it behaves when its file is no longer what was indexed."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from serve.embedder import EmbedderConfig
from serve.errors import ContractError, NoIndexError, OperatorError
from serve.lanes import semantic
from serve.query_embedder import QueryEmbedder
from serve.references import References, answer
from serve.settings import ServeSettings
from tests.references.support import GUIDE, DocsWorld
from tests.support import run

FIELDS = {
    "retrieved": {"target", "source", "timestamp", "data", "format", "complete"},
    "citation": {"reference", "version", "hash", "authority"},
    "provenance": {"source_type", "last_modified", "freshness", "reliability"},
    "extraction": {"applied_filters", "original_size", "returned_size", "truncated"},
}
SUMMER = "what to correct in summer"
SECTION = "docs:guides/tides.md#corrections"


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> DocsWorld:
    """A built world that is only asked."""
    world = DocsWorld(tmp_path_factory.mktemp("world"))
    world.books()
    world.build()
    return world


@pytest.fixture
def world(tmp_path: Path) -> DocsWorld:
    """A built world that a test may spoil."""
    made = DocsWorld(tmp_path)
    made.books()
    made.build()
    return made


def first(world: DocsWorld, query: str = SUMMER, **bounds: int) -> dict[str, Any]:
    return dict(world.references().answer(query, **bounds)["results"][0])


def rewrite(world: DocsWorld, old: str, new: str) -> None:
    path = world.folder() / "guides/tides.md"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.requirement("R105")
def test_a_hit_carries_its_provenance(read_only: DocsWorld) -> None:
    path = read_only.folder() / "guides/tides.md"
    hit = first(read_only)

    assert {name: set(hit[name]) for name in FIELDS} == FIELDS
    assert hit["section"]["id"] == hit["retrieved"]["target"] == SECTION
    assert hit["section"]["heading"] == "Tide tables > Reading > Corrections"
    assert hit["retrieved"]["source"] == f"file:{path}"
    assert hit["retrieved"]["timestamp"].endswith("Z")
    assert hit["retrieved"]["format"] == "markdown"
    assert hit["retrieved"]["complete"] is True
    assert hit["citation"]["reference"] == f"{path}:13-15"
    assert hit["evidence_anchors"] == [f"{path}:13-15"]
    assert hit["citation"]["hash"] == f"blake3:{blake3(path.read_bytes()).hexdigest()}"
    assert hit["citation"]["authority"] == "medium"
    assert hit["provenance"]["source_type"] == "file"
    assert hit["provenance"]["freshness"] == "fresh"
    assert hit["extraction"]["original_size"] == hit["extraction"]["returned_size"] == len(hit["retrieved"]["data"])
    assert hit["extraction"]["applied_filters"]["lines"] == "13-15"
    assert hit["extraction"]["truncated"] is False
    assert 0.3 < hit["confidence"] <= 1.0
    assert hit["assumptions"] == []


def test_the_quoted_text_is_the_files_own_lines(read_only: DocsWorld) -> None:
    for query in (SUMMER, "waterproof paper", "wind from the land", "scale of the map", "the column of high water"):
        for hit in read_only.references().answer(query, limit=6)["results"]:
            path, _, lines = hit["citation"]["reference"].rpartition(":")
            start, end = map(int, lines.split("-"))
            assert hit["retrieved"]["data"] == "\n".join(Path(path).read_text("utf-8").split("\n")[start - 1 : end])


def test_the_answer_says_which_lanes_took_part_and_how_old_the_index_is(read_only: DocsWorld) -> None:
    found = read_only.references().answer(SUMMER, limit=2)

    assert found["query"] == SUMMER
    assert len(found["results"]) == 2
    assert found["lanes"] == {"semantic": {"used": True, "reason": ""}, "lexical": {"used": True, "reason": ""}}
    assert found["generation"] == read_only.generation
    assert found["age_seconds"] >= 0
    assert (found["documents"], found["sections"], found["notes"], found["next"]) == (2, 6, [], "")
    assert json.loads(json.dumps(found)) == found


def test_a_question_of_meaning_and_a_question_of_words_are_both_answered(read_only: DocsWorld) -> None:
    meaning = first(read_only, "sheets that survive getting wet")
    words = first(read_only, "25000")

    assert meaning["section"]["id"] == "docs:guides/tides.md#printing"
    assert words["section"]["id"] == "docs:faq.md#which-map-do-i-need"
    assert words["section"]["ranks"]["lexical"] == 1


def test_what_has_nothing_to_do_with_the_question_is_left_out(read_only: DocsWorld) -> None:
    found = read_only.references().answer("kubernetes ingress certificates rotation")

    assert found["results"] == []
    assert found["notes"] == ["no section has to do with the query"]
    assert found["next"]


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"limit": 0}, "the limit is 0"),
        ({"limit": 21}, "the limit is 21"),
        ({"max_chars": 199}, "max_chars is 199"),
        ({"max_chars": 200_001}, "max_chars is 200001"),
    ],
)
def test_bounds_are_kept(read_only: DocsWorld, bounds: dict[str, int], said: str) -> None:
    with pytest.raises(OperatorError, match=said) as caught:
        read_only.references().answer(SUMMER, **bounds)

    assert caught.value.code == 2
    assert caught.value.next_step


@pytest.mark.parametrize("query", ["", " \n\t ", "x" * 20_001])
def test_a_query_that_is_none_is_refused(read_only: DocsWorld, query: str) -> None:
    with pytest.raises(OperatorError) as caught:
        read_only.references().answer(query)

    assert caught.value.code == 2


@pytest.mark.parametrize(
    "query", ["\0", "\ud800", "'; drop table", "[" * 5_000, "数据", "a" * 20_000, "../../etc/passwd"]
)
def test_strange_queries_get_an_answer(read_only: DocsWorld, query: str) -> None:
    found = read_only.references().answer(query)

    assert isinstance(found["results"], list)


@pytest.mark.parametrize("room", [200, 300, 500, 1_000])
def test_all_texts_together_keep_within_max_chars(world: DocsWorld, room: int) -> None:
    for number in range(6):
        world.document(f"long-{number}.md", f"# Harbour {number}\n\n" + f"The harbour number {number} is deep. " * 40)
    world.build()

    found = world.references().answer("which harbour is deep", limit=6, max_chars=room)
    hits = found["results"]

    assert len(hits) == 6
    assert 0 < sum(len(hit["retrieved"]["data"]) for hit in hits) <= room
    for hit in hits:
        cut = hit["extraction"]["returned_size"] < hit["extraction"]["original_size"]
        assert hit["extraction"]["truncated"] is cut
        assert hit["retrieved"]["complete"] is not cut
        assert any("max_chars" in said for said in hit["assumptions"]) is cut
        assert len(hit["retrieved"]["data"]) > 0


def test_a_part_of_a_long_section_is_said_to_be_one(world: DocsWorld) -> None:
    lines = [f"Buoy {n} lies at mile {n} and shows light {n}." for n in range(400)]
    path = world.document("buoys.md", "# Buoys\n\n" + "\n".join(lines) + "\n")
    world.build()

    hit = first(world, "buoy 311 lies at mile 311", limit=1)
    start, end = map(int, hit["citation"]["reference"].rpartition(":")[2].split("-"))

    assert hit["section"]["parts"] > 5
    assert hit["retrieved"]["complete"] is False
    assert hit["extraction"]["truncated"] is False
    assert hit["extraction"]["original_size"] == len(path.read_text("utf-8")) - 1
    assert "Buoy 311 lies" in hit["retrieved"]["data"]
    assert hit["retrieved"]["data"] in "\n".join(path.read_text("utf-8").split("\n")[start - 1 : end])
    assert any(said.startswith("the section is long: this is part") for said in hit["assumptions"])


# ------------------------------------------------------------------------------------------- files that have changed


def test_a_text_with_bytes_that_are_not_utf_8_is_said_to_have_some(world: DocsWorld) -> None:
    (world.folder() / "latin.md").write_bytes("# Badgers\n\nA caf\u00e9 for badgers and otters.\n".encode("latin-1"))
    world.build()
    hit = first(world, "a place for badgers and otters")
    assert "caf\ufffd" in hit["retrieved"]["data"]
    assert any("not all UTF-8" in note for note in hit["assumptions"])


def test_a_file_that_changed_elsewhere_is_stale_and_its_section_is_found_where_it_is_now(world: DocsWorld) -> None:
    rewrite(world, "Tide tables tell", "One.\n\nTwo.\n\nTide tables tell")

    hit = first(world)

    assert hit["retrieved"]["data"].startswith("## Corrections\n\nAdd an hour in summer")
    assert hit["citation"]["reference"].endswith(":17-19")
    assert hit["provenance"]["freshness"] == "stale"
    assert hit["retrieved"]["complete"] is True
    assert any("reads as it was indexed" in said for said in hit["assumptions"])


def test_a_section_that_changed_is_quoted_as_it_is_now_and_says_so(world: DocsWorld) -> None:
    before = first(world)
    rewrite(world, "Add an hour in summer", "Take away two hours\nin summer")

    hit = first(world)

    path = world.folder() / "guides/tides.md"
    assert "Take away two hours" in hit["retrieved"]["data"]
    assert hit["citation"]["reference"].endswith(":13-16")
    assert hit["citation"]["hash"] == f"blake3:{blake3(path.read_bytes()).hexdigest()}"
    assert hit["provenance"]["freshness"] == "stale"
    assert hit["confidence"] < before["confidence"]
    assert any("found again by its heading" in said for said in hit["assumptions"])


def test_a_section_that_was_taken_out_is_flagged_and_nothing_is_made_up(world: DocsWorld) -> None:
    rewrite(world, "## Corrections", "## Something else")

    hit = first(world)

    assert hit["section"]["id"] == SECTION
    assert hit["retrieved"]["data"] == ""
    assert hit["retrieved"]["complete"] is False
    assert hit["provenance"]["freshness"] == "stale"
    assert hit["citation"]["authority"] == "low"
    assert hit["confidence"] == 0
    assert hit["evidence_anchors"] == []
    assert any("no section of it has this heading any more" in said for said in hit["assumptions"])


def test_a_section_under_another_parent_is_found_by_its_text(world: DocsWorld) -> None:
    rewrite(world, "# Reading", "# How to read them")

    hit = first(world)

    assert hit["retrieved"]["data"].startswith("## Corrections")
    assert hit["provenance"]["freshness"] == "stale"


def test_of_equal_headings_the_one_with_the_indexed_text_is_quoted(world: DocsWorld) -> None:
    twins = "# A\n\n## Note\n\nFirst lighthouse.\n\n## Note\n\nSecond foghorn.\n"
    path = world.document("twins.md", twins)
    world.build()
    path.write_text(twins.replace("## Note\n\nFirst lighthouse.\n\n", ""), encoding="utf-8")

    hit = first(world, "foghorn", limit=1)
    gone = first(world, "lighthouse", limit=1)

    assert hit["retrieved"]["data"] == "## Note\n\nSecond foghorn."
    assert hit["citation"]["reference"].endswith(":3-5")
    # What is left under that heading is given as it is now, and said not to be what was indexed.
    assert gone["provenance"]["freshness"] == "stale"
    assert gone["confidence"] <= 0.6


def test_a_file_that_is_gone_is_flagged_with_what_the_index_remembers(world: DocsWorld) -> None:
    path = world.folder() / "guides/tides.md"
    digest = blake3(path.read_bytes()).hexdigest()
    path.unlink()

    found = world.references().answer(SUMMER, limit=6)
    hit = found["results"][0]

    assert hit["section"]["id"] == SECTION
    assert hit["retrieved"] | {"timestamp": ""} == {
        "target": SECTION,
        "source": f"file:{path}",
        "timestamp": "",
        "data": "",
        "format": "markdown",
        "complete": False,
    }
    assert hit["citation"]["hash"] == f"blake3:{digest}"
    assert hit["citation"]["reference"] == str(path)
    assert hit["provenance"]["last_modified"] is None
    assert hit["provenance"]["freshness"] == "unknown"
    assert hit["extraction"]["original_size"] is None
    assert hit["confidence"] == 0
    assert any("gone since the index was built" in said for said in hit["assumptions"])
    others = [item for item in found["results"] if item["section"]["document"] == "faq.md"]
    assert others
    assert all(item["provenance"]["freshness"] == "fresh" for item in others)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path: Path) -> None:
    secret = path.parent.parent.parent / "secret.md"
    secret.write_text(GUIDE.replace("Add an hour", "SECRET"), encoding="utf-8")
    path.unlink()
    path.symlink_to(secret)


def replace_folder_by_link(path: Path) -> None:
    outside = path.parent.parent.parent / "outside"
    shutil.move(path.parent, outside)
    path.parent.symlink_to(outside)


def replace_by_binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 50)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "harm", [replace_by_folder, replace_by_pipe, replace_by_link, replace_folder_by_link, replace_by_binary, empty]
)
def test_whatever_takes_a_files_place_costs_only_its_own_hits(world: DocsWorld, harm: Any) -> None:
    harm(world.folder() / "guides/tides.md")

    found = world.references().answer("tide", limit=6)
    by_document = {
        name: [h for h in found["results"] if h["section"]["document"] == name]
        for name in ("faq.md", "guides/tides.md")
    }

    assert by_document["guides/tides.md"]
    assert by_document["faq.md"]
    for hit in by_document["guides/tides.md"]:
        assert hit["retrieved"]["data"] == ""
        assert hit["retrieved"]["complete"] is False
        assert hit["provenance"]["freshness"] in {"stale", "unknown"}
        assert hit["assumptions"]
    assert all(hit["retrieved"]["complete"] for hit in by_document["faq.md"])


def test_a_source_behind_a_link_is_read_like_any_other(tmp_path: Path) -> None:
    world = DocsWorld(tmp_path)
    world.folder().rmdir()
    (tmp_path / "real").mkdir()
    world.folder().symlink_to(tmp_path / "real")
    world.books()
    world.build()

    assert first(world)["provenance"]["freshness"] == "fresh"


# --------------------------------------------------------------------------------- generations, lanes, no references


def test_a_new_generation_is_followed_without_a_restart(world: DocsWorld) -> None:
    references = world.references()
    before = references.answer("anchor chain")
    world.document("anchors.md", "# Anchors\n\nThe anchor chain is forty metres long.\n")
    world.build()

    after = references.answer("anchor chain")

    assert before["results"] == []
    assert after["results"][0]["section"]["document"] == "anchors.md"
    assert after["generation"] == world.generation != before["generation"]


def test_without_references_the_answer_names_the_next_step(tmp_path: Path) -> None:
    world = DocsWorld(tmp_path)
    world.docs = []
    world.configure()
    world.library()
    world.build()

    found = world.references().answer(SUMMER)

    assert found["results"] == []
    assert found["notes"] == ["no references are indexed"]
    assert 'kind = "references"' in found["next"]
    assert world.references().info()["documents"] == 0


def test_sources_without_text_are_told_apart_from_no_sources(tmp_path: Path) -> None:
    world = DocsWorld(tmp_path)
    world.document("empty.md", "")
    world.document("broken.md", bytes(50))
    world.build()

    found = world.references().answer(SUMMER)

    assert found["results"] == []
    assert found["lanes"]["semantic"] == {"used": False, "reason": "no section is indexed"}
    assert found["notes"][0] == "the sources of references hold no text that could be indexed"
    assert found["notes"][1].startswith("1 files could not be indexed")


def test_without_an_index_the_error_names_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(NoIndexError) as caught:
        References(ServeSettings(data_dir=tmp_path)).answer(SUMMER)

    assert caught.value.next_step == "run `retrieval build`"


def test_another_embedder_than_the_indexs_leaves_the_words_and_says_so(read_only: DocsWorld) -> None:
    other = EmbedderConfig(kind="endpoint", model="other", url="http://127.0.0.1:9/v1")
    found = References(ServeSettings(data_dir=read_only.data, embedder=other)).answer(SUMMER)

    assert found["lanes"]["semantic"]["used"] is False
    assert "not the one that made the index" in found["lanes"]["semantic"]["reason"]
    assert found["results"][0]["section"]["id"] == SECTION
    assert set(found["results"][0]["section"]["ranks"]) == {"lexical"}


def test_an_endpoint_that_is_down_leaves_the_words_and_says_so(tmp_path: Path) -> None:
    from tests.embedder.loopback import EmbeddingServer

    server = EmbeddingServer()
    world = DocsWorld(tmp_path)
    world.books()
    config = EmbedderConfig(kind="endpoint", model="m", url=server.url, retries=0, timeout=2.0)
    more = {"RETRIEVAL_EMBEDDER": "endpoint", "RETRIEVAL_EMBEDDING_URL": server.url, "RETRIEVAL_EMBEDDING_MODEL": "m"}
    world.build(**more)
    settings = ServeSettings(data_dir=world.data, embedder=config)
    answering = References(settings)
    up = answering.answer(SUMMER)
    answering.close()
    server.close()

    down = References(settings).answer(SUMMER)

    assert up["lanes"]["semantic"]["used"] is True
    assert down["lanes"]["semantic"]["used"] is False
    assert down["lanes"]["semantic"]["reason"]
    assert down["results"][0]["section"]["id"] == SECTION


def test_the_model_of_a_searcher_is_shared(read_only: DocsWorld) -> None:
    shared = QueryEmbedder(EmbedderConfig(cache_dir=read_only.data / "models"))
    asked: list[list[str]] = []
    vectors = shared.vectors
    shared.vectors = lambda index, texts: (asked.append(list(texts)), vectors(index, texts))[1]  # type: ignore[method-assign]

    found = References(ServeSettings(data_dir=read_only.data), embedder=shared).answer(SUMMER)

    assert found["lanes"]["semantic"]["used"] is True
    assert asked == [semantic.parts(SUMMER)]


def test_many_threads_ask_at_once_while_generations_change(world: DocsWorld) -> None:
    references = world.references()
    faults: list[BaseException] = []
    done = threading.Event()

    def ask() -> None:
        try:
            while not done.is_set():
                assert references.answer(SUMMER, limit=3)["results"]
        except BaseException as error:  # noqa: BLE001 - shown below
            faults.append(error)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for number in range(4):
        world.document(f"more-{number}.md", f"# More {number}\n\nSummer {number}.\n")
        world.build()
    done.set()
    for thread in threads:
        thread.join()

    assert faults == []


def test_a_hit_that_cannot_be_made_is_flagged_and_the_others_stand(
    read_only: DocsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = answer.hit.make

    def fail(section: Any, *arguments: Any) -> dict[str, Any]:
        if section.id == SECTION and arguments[1].state != "gone":
            raise ValueError("out of luck")
        return made(section, *arguments)

    monkeypatch.setattr(answer.hit, "make", fail)

    hits = read_only.references().answer(SUMMER, limit=3)["results"]

    assert hits[0]["section"]["id"] == SECTION
    assert hits[0]["retrieved"]["complete"] is False
    assert any("out of luck" in said for said in hits[0]["assumptions"])
    assert all(hit["retrieved"]["complete"] for hit in hits[1:])


def test_a_damaged_index_is_an_error_with_the_next_step(world: DocsWorld) -> None:
    path = world.data / "snapshots" / world.generation / "references-sections.jsonl"
    path.write_bytes(b"x" * path.stat().st_size)

    with pytest.raises(ContractError) as caught:
        world.references().answer(SUMMER)

    assert "retrieval build" in caught.value.next_step


def test_the_page_of_information_names_sources_documents_and_the_model(read_only: DocsWorld) -> None:
    info = read_only.references().info()

    assert (info["documents"], info["sections"], info["chunk_tokens"], info["overlap_tokens"]) == (2, 6, 512, 64)
    assert info["model"]["kind"] == "builtin"
    assert info["counted_by"].startswith("all-MiniLM-L6-v2")
    assert [(row["id"], row["sections"]) for row in info["files"]] == [("docs:faq.md", 2), ("docs:guides/tides.md", 4)]
    for row in info["files"]:
        assert row["hash"] == f"blake3:{blake3(Path(row['file']).read_bytes()).hexdigest()}"
    assert info["sources"]["docs"]["hash"].startswith("blake3:")


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = (
        "import sys, serve.references; heavy = {'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules); "
        "from serve.references import References; print(heavy, {'onnxruntime', 'tokenizers'} & set(sys.modules))"
    )

    assert run([sys.executable, "-c", script]).stdout == "set() set()\n"
