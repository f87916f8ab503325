"""What the command line says of references: questions, the page of information, status, plan, why, verify, clean."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.cli.references import references
from tests.references.support import FAQ, GUIDE, DocsWorld
from tests.support import ROOT

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> DocsWorld:
    """Built, and only looked at. One file cannot be indexed."""
    world = DocsWorld(tmp_path_factory.mktemp("world"))
    world.library()
    world.books()
    world.document("picture.md", bytes(64))
    world.build()
    return world


@pytest.fixture
def world(tmp_path: Path) -> DocsWorld:
    made = DocsWorld(tmp_path)
    made.skill("sql-tuning")
    made.books()
    made.build()
    return made


def asked(
    world: DocsWorld,
    monkeypatch: pytest.MonkeyPatch,
    *words: str,
    limit: int = 5,
    max_chars: int = 8_000,
    as_json: bool = False,
) -> tuple[int, str]:
    """The exit code and the output of `retrieval references`, in this process."""
    out = io.StringIO()
    with monkeypatch.context() as context, contextlib.redirect_stdout(out):
        context.chdir(world.root)
        for name, value in world.environment().items():
            context.setenv(name, value)
        code = references(words, limit, max_chars, "", as_json=as_json)
    return code, out.getvalue()


@pytest.mark.requirement("R102")
def test_a_question_is_answered_with_text_and_citation(read_only: DocsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = asked(read_only, monkeypatch, "why", "is", "the", "tide", "late", limit=1)
    lines = out.splitlines()

    assert code == 0
    assert lines[0].startswith("1. Questions > Why is the tide late?  fresh, confidence 0.")
    assert lines[1] == f"   {read_only.folder()}/faq.md:3-5"
    assert "   | Strong wind from the land holds the water back." in lines
    assert lines[-1].startswith("1 of 6 sections, index ")
    assert "1 files could not be indexed; `retrieval status --problems` lists them" in lines


def test_a_question_in_json_is_the_answer_itself(read_only: DocsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = asked(read_only, monkeypatch, "which map do I need", as_json=True)
    answer = json.loads(out)

    assert code == 0
    assert answer["results"][0]["section"]["id"] == "docs:faq.md#which-map-do-i-need"
    assert answer["sections"] == 6


def test_the_one_word_info_means_the_page_of_information(read_only: DocsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = asked(read_only, monkeypatch, "info")
    page = json.loads(asked(read_only, monkeypatch, "info", as_json=True)[1])
    question = json.loads(asked(read_only, monkeypatch, "info", "about", "maps", as_json=True)[1])

    assert code == 0
    assert "2 documents, 6 sections" in out
    assert "at most 512 tokens, 64 of overlap, counted by all-MiniLM-L6-v2" in out
    assert "model: all-MiniLM-L6-v2" in out
    assert "docs:guides/tides.md" in out
    assert "blake3:" in out
    assert (page["documents"], page["sources"]["docs"]["problem"]) == (2, 1)
    assert question["query"] == "info about maps"


def test_text_of_a_file_cannot_steer_the_terminal(world: DocsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.document("evil.md", "# Evil \x1b[2Jname\u202e\n\nLighthouse \x1b]0;title\x07 \u202e\n")
    world.build()

    _code, out = asked(world, monkeypatch, "lighthouse", limit=1)

    assert "Lighthouse" in out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)


def test_without_references_the_command_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = DocsWorld(tmp_path)
    world.docs = []
    world.configure()
    world.library()
    world.build()

    code, out = asked(world, monkeypatch, "anything")
    _, info = asked(world, monkeypatch, "info")

    assert code == 0
    assert "no references are indexed" in out
    assert 'kind = "references"' in out
    assert 'kind = "references"' in info


def test_a_build_counts_sections_and_ends_with_3_for_a_file_that_cannot_be_indexed(world: DocsWorld) -> None:
    assert "docs: 6 sections of 2 documents" in world.run("build").stdout
    world.document("picture.md", bytes(64))

    done = world.run("build")
    account = world.json("build", code=3)

    assert done.returncode == 3
    assert "1 not indexed because of a problem: retrieval status --problems" in done.stdout
    assert account["references"] == {"docs": {"found": 3, "documents": 2, "problem": 1, "sections": 6}}
    assert account["problems"] == 1


def test_status_counts_references_apart_from_skills(read_only: DocsWorld) -> None:
    status = read_only.json("status", "--problems", code=3)
    shown = read_only.run("status").stdout

    assert status["references"] == {"docs": {"found": 3, "documents": 2, "problem": 1, "sections": 6}}
    assert status["sources"].keys() == {"main"}
    assert [(row["source"], row["reason"].partition(":")[0]) for row in status["lists"]["problem"]] == [
        ("docs", "not_text")
    ]
    assert status["warnings"] == []
    assert "references  found  documents  problem  sections" in shown


def test_status_tells_of_a_source_that_is_not_built_yet_or_no_longer_configured(world: DocsWorld) -> None:
    world.docs = ["docs", "new"]
    world.folder("new").mkdir()
    world.configure()
    ahead = world.json("status", code=3)
    world.docs = []
    world.configure()
    behind = world.json("status", code=3)

    assert [row["warning"] for row in ahead["warnings"]] == ["source new is configured but not in the index"]
    assert [row["warning"] for row in behind["warnings"]] == ["source docs is in the index but no longer configured"]


def test_a_plan_counts_what_would_be_cut_and_embedded_and_does_nothing(world: DocsWorld) -> None:
    assert world.json("build", "--dry-run")["changes"] is False
    world.document("faq.md", FAQ.replace("Strong wind", "A strong wind"))
    world.document("new.md", "# New\n\nText.\n")
    before = world.generation

    plan = world.json("build", "--dry-run")

    steps = {name: plan["steps"][name]["execute"] for name in ("document", "section", "terms", "embed", "upsert")}
    assert steps == {"document": 2, "section": 2, "terms": 2, "embed": 2, "upsert": 0}
    assert plan["changes"] is True
    assert world.generation == before
    world.build()
    assert world.json("build", "--dry-run")["changes"] is False
    (world.folder() / "new.md").unlink()
    assert world.json("build", "--dry-run")["changes"] is True


def test_the_graph_shows_what_would_run(world: DocsWorld) -> None:
    def states() -> dict[str, str]:
        return {node["name"]: node["state"] for node in world.json("graph")}

    assert set(states().values()) == {"current"}
    world.document("faq.md", FAQ + "\nMore.\n")

    changed = {name: state for name, state in states().items() if state != "current"}

    assert changed == {
        "document:docs": "stale",
        "section:docs": "waiting",
        "terms:docs": "waiting",
        "embed:docs": "waiting",
        "publish": "waiting",
    }


def test_why_tells_what_last_changed_a_section(world: DocsWorld) -> None:
    world.document("guides/tides.md", GUIDE.replace("Add an hour", "Take an hour away"))
    world.build()

    reasons = world.json("why", "docs:guides/tides.md#corrections")
    untouched = world.json("why", "docs:guides/tides.md#printing")
    shown = world.run("why", "docs:guides/tides.md#corrections").stdout

    assert (reasons["status"], reasons["changed_input"]) == ("indexed", "its file")
    assert [step["step"] for step in reasons["steps"]] == ["document", "section", "terms", "embed"]
    assert reasons["path"].endswith("guides/tides.md:13-15")
    assert all(not step["changed"] for step in untouched["steps"] if step["step"] == "section")
    assert "its file" in shown


def test_show_knows_documents_and_sections_and_suggests_near_ones(world: DocsWorld) -> None:
    section = world.json("show", "docs:faq.md#which-map-do-i-need")
    document = world.json("show", "docs:faq.md")
    unknown = world.run("show", "docs:faq.md#map")

    assert (section["lines"], section["part"], section["headings"]) == (
        "7-9",
        "1 of 1",
        ["Questions", "Which map do I need?"],
    )
    assert document["sections"] == ["docs:faq.md#why-is-the-tide-late", "docs:faq.md#which-map-do-i-need"]
    assert unknown.returncode == 2
    assert "did you mean docs:faq.md#which-map-do-i-need?" in unknown.stderr


def disagreements(world: DocsWorld, code: int = 1) -> list[str]:
    return [row["what"] for row in world.json("verify", code=code)["disagreements"]]


def test_verify_agrees_after_a_build_and_counts_sections(world: DocsWorld) -> None:
    result = world.json("verify")

    assert result["count"] == 0
    assert (result["checked"]["documents"], result["checked"]["sections"]) == (2, 6)


def test_verify_names_what_changed_in_the_files(world: DocsWorld) -> None:
    world.document("faq.md", FAQ.replace("Strong", "Weak"))
    world.document("new.md", "# New\n\nText.\n")
    (world.folder() / "guides/tides.md").unlink()

    said = disagreements(world)

    assert "section docs:new.md#new is in its source but not in the index" in said
    assert "section docs:guides/tides.md#printing is in the index but no longer in its source" in said
    assert "section docs:faq.md#why-is-the-tide-late is not as it was indexed" in said
    assert "document docs:faq.md is not as it was indexed" in said
    assert "what the sources of references hold (documents, problems) has changed" in said


def test_verify_notices_a_vector_that_is_not_its_sections(world: DocsWorld) -> None:
    path = world.data / "snapshots" / world.generation / "references-vectors.npy"
    vectors = np.load(path)
    vectors[1] = vectors[0]
    np.save(path, vectors)

    said = disagreements(world)

    assert "references-vectors.npy is not as it was published" in said
    assert "docs:faq.md#which-map-do-i-need: the published vector is not the computed one" in said


def test_verify_notices_sources_that_came_or_went(world: DocsWorld) -> None:
    world.docs = []
    world.configure()

    assert "references are in the index, but no source of references is configured" in disagreements(world)


def test_clean_takes_references_out_and_a_build_brings_them_back_from_the_memo(world: DocsWorld) -> None:
    before = world.snapshot()
    assert world.run("clean").returncode == 0
    assert not (world.data / "snapshots").exists()
    assert not (world.data / "build").exists()

    account = world.json("build")

    assert account["steps"]["embed"]["executed"] == account["steps"]["section"]["executed"] == 0
    assert world.snapshot() == before


def test_only_the_source_that_is_named_is_walked(world: DocsWorld) -> None:
    world.document("faq.md", FAQ + "\nMore.\n")
    world.skill("pod-audit")

    only_docs = world.json("build", "docs")
    rest = world.json("build")

    assert only_docs["steps"]["document"]["executed"] == 1
    assert "scan" not in only_docs["steps"] or only_docs["steps"]["scan"]["executed"] == 0
    assert rest["steps"]["scan"]["executed"] == 1


def test_doctor_lists_the_source_as_references(world: DocsWorld) -> None:
    checks: list[dict[str, Any]] = json.loads(world.run("doctor", "--json").stdout)

    assert [row["detail"] for row in checks if row["name"] == "source docs"] == [f"{world.folder()} (references)"]


def test_a_no_op_build_loads_nothing_that_only_work_needs(world: DocsWorld) -> None:
    world.build()
    script = (
        "import sys; from pipeline.cli import run; run(['build']); "
        "print(sorted({'numpy', 'tokenizers', 'onnxruntime', 'yaml'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **world.environment()}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=world.root,
        env=environment,
        capture_output=True,
        check=True,
        encoding="utf-8",
    )

    assert done.stdout.splitlines()[-1] == "[]", done.stdout
