"""`retrieve_skill` from question to answer, over an index that a real build made."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serve.embedder import EmbedderConfig
from serve.errors import ContractError, NoIndexError, OperatorError
from serve.retrieve import Retriever
from serve.selection import Candidate, Choice, Shelf
from serve.settings import Bounds, ScoutSettings, ServeSettings
from serve.usage import UsageLog
from tests.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "world", "main", "side")
    made.library()
    return made


def settings(world: World, **more: Any) -> ServeSettings:
    scout = ScoutSettings(selector="rank")
    given = {"harness": "hermes", "scout": scout, "iwec_command": "off", **more}
    embedder = EmbedderConfig(cache_dir=world.data / "models")
    return ServeSettings(data_dir=world.data, embedder=embedder, **given)


@pytest.fixture
def retriever(world: World) -> Iterator[Retriever]:
    world.build()
    made = Retriever(settings(world))
    yield made
    made.close()


class Chooser:
    """A selector that decides as it is told."""

    name = "told"

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.seen: list[Candidate] = []
        self.closed = 0

    def choose(
        self, query: str, candidates: list[Candidate], shelf: Shelf, *, deadline: float, cancelled: threading.Event
    ) -> Choice:
        del query, shelf, deadline, cancelled
        self.seen = candidates
        return self.choice

    def close(self) -> None:
        self.closed += 1


def told(retriever: Retriever, **choice: Any) -> Chooser:
    chooser = Chooser(Choice(selector="told", **choice))
    retriever._selector = chooser  # so that what follows from a choice can be seen
    return chooser


@pytest.mark.requirement("R005")
def test_the_chosen_file_is_returned_as_it_is_with_all_that_is_known_of_it(world: World, retriever: Retriever) -> None:
    path = world.lib("main") / "pod-audit" / "SKILL.md"
    told(retriever, id="main:pod-audit", reason="it fits", tool_calls=2, considered=("main:pod-audit",))
    answer = retriever.skill("audit the pods of a cluster")
    assert answer["found"]
    assert answer["text"].encode() == path.read_bytes()
    assert (answer["id"], answer["name"], answer["source"]) == ("main:pod-audit", "pod-audit", "main")
    assert answer["state"] == "cold"
    assert answer["base_directory"] == str(path.parent)
    assert answer["files"] == ["notes.md"]
    assert answer["selection"]["reason"] == "it fits"
    assert answer["selection"]["tool_calls"] == 2
    assert answer["projection"]["state"] == "copied"
    assert (Path(answer["projection"]["path"]) / "notes.md").read_text(encoding="utf-8") == "notes of pod-audit\n"
    assert answer["reload"] == "/reload-skills"
    assert answer["lanes"]["semantic"]["used"]
    assert answer["lanes"]["lexical"]["used"]
    assert answer["index"]["skills"] == 4
    assert answer["runner_up"]["id"] != "main:pod-audit"
    assert answer["notes"] == []


@pytest.mark.parametrize("query", ["main:sql-tuning", "  main:sql-tuning\n", "sql-tuning", "SQL-Tuning"])
def test_an_exact_id_or_a_name_that_one_skill_has_needs_no_selector(retriever: Retriever, query: str) -> None:
    chooser = told(retriever, id="main:pod-audit")
    answer = retriever.skill(query)
    assert answer["id"] == "main:sql-tuning"
    assert answer["selection"]["selector"] == "exact"
    assert chooser.seen == []


def test_a_name_that_two_skills_have_goes_to_the_selector(world: World) -> None:
    world.skill("other/sql-tuning", body="A wholly different text about SQL and databases. " * 20, source="side")
    world.build()
    retriever = Retriever(settings(world))
    chooser = told(retriever, reason="none fits")
    answer = retriever.skill("sql-tuning")
    assert not answer["found"]
    assert len(chooser.seen) > 1
    retriever.close()


def test_the_id_of_a_duplicate_gives_what_stands_for_it(world: World) -> None:
    shutil.copytree(world.lib("main") / "sql-tuning", world.lib("side") / "sql-tuning")
    world.build()
    retriever = Retriever(settings(world))
    answer = retriever.skill("side:sql-tuning")
    assert answer["id"] == "main:sql-tuning"
    assert any("duplicate" in note for note in answer["notes"])
    retriever.close()


def test_none_fits_is_a_normal_answer(retriever: Retriever) -> None:
    told(retriever, reason="nothing here is about that")
    answer = retriever.skill("audit the pods of a cluster")
    assert not answer["found"]
    assert not answer["selection"]["failed"]
    assert answer["text"] == ""
    assert answer["projection"]["state"] == "none"
    assert answer["selection"]["reason"] == "nothing here is about that"


def test_a_choice_that_is_not_on_the_shelf_is_refused(retriever: Retriever) -> None:
    told(retriever, id="main:no-such-skill", reason="trust me")
    answer = retriever.skill("audit the pods of a cluster")
    assert not answer["found"]
    assert answer["selection"]["failed"]
    assert "main:no-such-skill" in answer["selection"]["reason"]


def test_a_file_that_was_changed_since_the_build_is_returned_as_it_is_now_and_said(
    world: World, retriever: Retriever
) -> None:
    path = world.lib("main") / "pod-audit" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nOne more step.\n", encoding="utf-8")
    answer = retriever.skill("main:pod-audit")
    assert answer["text"].endswith("One more step.\n")
    assert any("changed after the index was built" in note for note in answer["notes"])


def test_a_file_that_is_gone_is_no_answer_but_its_reason(world: World, retriever: Retriever) -> None:
    shutil.rmtree(world.lib("main") / "pod-audit")
    answer = retriever.skill("main:pod-audit")
    assert not answer["found"]
    assert answer["selection"]["failed"]
    assert "gone" in answer["selection"]["reason"]
    assert answer["projection"]["state"] == "none"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes in folders")
def test_a_pipe_in_the_place_of_the_file_holds_nothing_up(world: World, retriever: Retriever) -> None:
    path = world.lib("main") / "pod-audit" / "SKILL.md"
    path.unlink()
    os.mkfifo(path)
    answer = retriever.skill("main:pod-audit")
    assert not answer["found"]
    assert "no regular file" in answer["selection"]["reason"]


def test_a_file_that_is_not_utf_8_is_said_to_be_so(world: World) -> None:
    path = world.skill("latin", body="About an SQL database in Z\u00fcrich. " * 10)
    path.write_bytes(path.read_text(encoding="utf-8").encode("latin-1"))
    world.build()
    retriever = Retriever(settings(world))
    answer = retriever.skill("main:latin")
    assert "Z\ufffdrich" in answer["text"]
    assert any("not UTF-8" in note for note in answer["notes"])
    retriever.close()


def test_line_ends_and_byte_order_marks_are_returned_as_they_are(world: World) -> None:
    path = world.skill("windows")
    data = "\ufeff".encode() + path.read_bytes().replace(b"\n", b"\r\n")
    path.write_bytes(data)
    world.build()
    retriever = Retriever(settings(world))
    assert retriever.skill("main:windows")["text"].encode() == data
    retriever.close()


def test_a_very_long_text_is_cut_where_the_setting_says_and_the_whole_is_named(world: World) -> None:
    path = world.skill("long", body="About an SQL database. " * 1_000)
    world.build()
    retriever = Retriever(settings(world, bounds=Bounds(answer_chars=500)))
    answer = retriever.skill("main:long")
    assert answer["truncated"]
    assert len(answer["text"]) == 500
    assert any("500" in note and str(path) in note for note in answer["notes"])
    retriever.close()


def test_the_text_is_returned_when_the_package_cannot_be_projected(world: World) -> None:
    world.build()
    retriever = Retriever(settings(world, bounds=Bounds(project_bytes=10)))
    answer = retriever.skill("main:pod-audit")
    assert answer["found"]
    assert answer["text"].startswith("---")
    assert answer["projection"]["state"] == "failed"
    assert answer["projection"]["reason"]
    assert answer["reload"] == ""
    assert list((world.data / "projections").rglob("notes.md")) == []
    retriever.close()


def test_without_a_harness_nothing_is_copied(world: World) -> None:
    world.build()
    retriever = Retriever(settings(world, harness=""))
    answer = retriever.skill("main:pod-audit")
    assert answer["found"]
    assert answer["projection"]["reason"] == "no harness is set"
    assert not (world.data / "projections").exists()
    retriever.close()


def test_a_skill_that_the_harness_shows_itself_is_not_on_offer_there(world: World) -> None:
    shutil.copytree(world.lib("main") / "pod-audit", world.lib("side") / "pod-audit")
    world.configure()
    text = world.config.read_text(encoding="utf-8")
    head, _, tail = text.partition('name = "side"')
    tail = tail.replace('state = "cold"', 'state = "native"\nharness = "hermes"')
    world.config.write_text(f'{head}name = "side"{tail}', encoding="utf-8")
    world.build()
    hermes, omp = Retriever(settings(world)), Retriever(settings(world, harness="omp"))
    chooser = told(hermes, reason="none")
    answer = hermes.skill("main:pod-audit")
    assert not answer["found"]
    assert any("harness's own" in note for note in answer["notes"])
    assert "main:pod-audit" not in [item.id for item in chooser.seen]
    assert omp.skill("main:pod-audit")["found"]
    hermes.close()
    omp.close()


def test_each_query_is_recorded_and_the_setting_switches_it_off(world: World, retriever: Retriever) -> None:
    told(retriever, id="main:pod-audit", reason="it fits")
    answer = retriever.skill("audit the pods of a cluster")
    (row,) = UsageLog(world.data).rows()
    assert row.query_id == answer["query_id"]
    assert row.event.query == "audit the pods of a cluster"
    assert row.event.chosen == "main:pod-audit"
    assert row.event.harness == "hermes"
    assert "main:pod-audit" in [skill for skill, _score in row.event.candidates]
    (world.data / "usage.sqlite3").unlink()
    silent = Retriever(settings(world, usage=False))
    silent.skill("main:pod-audit")
    assert not (world.data / "usage.sqlite3").exists()
    silent.close()


def test_a_new_index_is_answered_from_at_once(world: World, retriever: Retriever) -> None:
    assert retriever.skill("main:pod-audit")["index"]["skills"] == 4
    world.skill("late")
    world.build()
    answer = retriever.skill("main:late")
    assert answer["found"]
    assert answer["index"]["skills"] == 5


def test_without_an_index_the_reason_and_the_next_step_are_given(world: World) -> None:
    retriever = Retriever(settings(world))
    with pytest.raises(NoIndexError, match="no index"):
        retriever.skill("anything")
    retriever.close()


@pytest.mark.parametrize("query", ["", "  \n", "x" * 20_001])
def test_a_query_that_cannot_be_used_is_an_error(retriever: Retriever, query: str) -> None:
    with pytest.raises(OperatorError):
        retriever.skill(query)


def test_progress_is_told_from_beginning_to_end(retriever: Retriever) -> None:
    told(retriever, id="main:pod-audit")
    seen: list[float] = []
    retriever.skill("audit the pods", progress=lambda fraction, _text: seen.append(fraction))
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)


def test_closing_ends_the_selector(retriever: Retriever) -> None:
    chooser = told(retriever, reason="none")
    retriever.close()
    assert chooser.closed == 1


def test_a_shelf_pages_a_text_and_names_what_lies_near(retriever: Retriever) -> None:
    whole = retriever.shelf.read("main:sql-tuning", 0, 100_000)
    first, second = retriever.shelf.read("main:sql-tuning", 0, 100), retriever.shelf.read("main:sql-tuning", 100, 50)
    assert whole.text[:150] == first.text + second.text
    assert whole.total == len(whole.text)
    assert "main:sql-tuning" not in whole.neighbours
    assert set(whole.neighbours) <= {"main:csv-cleaning", "main:pod-audit", "main:release-notes"}
    with pytest.raises(OperatorError, match="no such skill"):
        retriever.shelf.read("main:nothing")


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_that_leads_out_of_the_source_is_not_followed(
    world: World, retriever: Retriever, tmp_path: Path, what: str
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "SKILL.md").write_text("---\nname: pod-audit\n---\nA secret.\n", encoding="utf-8")
    (secret / "key.txt").write_text("a key\n", encoding="utf-8")
    folder = world.lib("main") / "pod-audit"
    if what == "file":
        (folder / "SKILL.md").unlink()
        (folder / "SKILL.md").symlink_to(secret / "SKILL.md")
    else:
        shutil.rmtree(folder)
        folder.symlink_to(secret)
    answer = retriever.skill("main:pod-audit")
    assert not answer["found"]
    assert "leads out of the source" in answer["selection"]["reason"]
    assert "secret" not in str({**answer, "selection": ""})
    assert list((world.data / "projections").rglob("key.txt")) == []
    with pytest.raises(OperatorError, match="leads out of the source"):
        retriever.shelf.read("main:pod-audit")


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_within_the_source_is_followed(world: World, retriever: Retriever) -> None:
    folder = world.lib("main") / "pod-audit"
    folder.rename(world.lib("main") / "moved")
    folder.symlink_to(world.lib("main") / "moved")
    assert retriever.skill("main:pod-audit")["found"]


def test_when_the_chosen_file_is_gone_the_others_are_still_offered(world: World, retriever: Retriever) -> None:
    told(retriever, id="main:pod-audit", reason="it fits")
    (world.lib("main") / "pod-audit" / "SKILL.md").unlink()
    answer = retriever.skill("audit the pods of a cluster")
    assert answer["selection"]["failed"]
    offered = [item["id"] for item in answer["candidates"]]
    assert offered
    assert "main:pod-audit" not in offered


@pytest.mark.parametrize(("harness", "named"), [("hermes", True), ("claude", False)])
def test_a_harness_that_cannot_be_told_of_its_lane_is_promised_no_listing(
    world: World, harness: str, named: bool
) -> None:
    world.build()
    retriever = Retriever(settings(world, harness=harness))
    answer = retriever.skill("main:pod-audit")
    assert answer["projection"]["state"] == "copied"
    assert bool(answer["projection"]["name"]) == named
    assert bool(answer["reload"]) == named
    retriever.close()


@pytest.mark.parametrize("name", ["vectors.npy", "lexical-terms.npy", "records.jsonl"])
def test_an_index_whose_bytes_were_damaged_is_called_that(world: World, name: str) -> None:
    world.build()
    path = world.data / "snapshots" / world.generation / name
    path.write_bytes(bytes(255 - byte for byte in path.read_bytes()))
    retriever = Retriever(settings(world))
    with pytest.raises(ContractError, match=f"damaged: {name}"):
        retriever.skill("audit the pods of a cluster")
    retriever.close()
