"""What Retrieval promises of a whole build, shown on whole builds."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serve.contract import Record
from tests.cli.conftest import Command
from tests.world import World


def published(world: World, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in world.snapshot()[name].splitlines()]


def ids(world: World) -> set[str]:
    return {row["id"] for row in published(world, "records.jsonl")}


def results(world: World, command: Command, *arguments: str) -> list[str]:
    return [row["id"] for row in command(world, "search", *arguments, "--json").json["results"]]


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Sources in every state: native and hidden skills of omp, a cold library, an archive. Built."""
    world = World(tmp_path_factory.mktemp("states"), "own", "cold", "old")
    world.skill("shown", "Tune an SQL database that is slow.", source="own")
    hidden = world.skill("secret-tuning", "Tune the locks of an SQL database.", source="own")
    text = hidden.read_text(encoding="utf-8")
    hidden.write_text(text.replace("---\n", "---\ndisable-model-invocation: true\n", 1), encoding="utf-8")
    world.skill("cold-tuning", "Tune the indexes of an SQL database.", source="cold")
    world.skill("no-subject", "Does the thing.", "See below.", source="cold")
    world.skill("old-tuning", "Tune the backups of an SQL database.", source="old")
    blocks = world.config.read_text(encoding="utf-8").split("[[sources]]")
    blocks[1] = blocks[1].replace('"cold"', '"native"') + 'harness = "omp"\n'
    blocks[3] = blocks[3].replace('"cold"', '"archived"')
    world.config.write_text("[[sources]]".join(blocks), encoding="utf-8")
    world.build()
    return world


@pytest.mark.requirement("R002", "R023")
def test_each_candidate_has_one_descriptor_and_one_vector_whatever_its_state(states: World) -> None:
    records = published(states, "records.jsonl")
    descriptors = published(states, "descriptors.jsonl")
    vectors = np.load(states.data / "snapshots" / states.generation / "vectors.npy")

    assert {row["id"]: row["state"] for row in records} == {
        "own:secret-tuning": "hidden",
        "cold:cold-tuning": "cold",
        "old:old-tuning": "archived",
    }
    assert [row["name"] for row in descriptors] == [row["name"] for row in records]
    assert len(vectors) == len(records)
    assert all(len(json.dumps(row)) < 8_000 for row in descriptors)


@pytest.mark.requirement("R012")
def test_a_native_skill_is_neither_in_the_catalog_nor_in_the_store_nor_in_an_answer(
    states: World, command: Command
) -> None:
    assert "own:shown" not in ids(states)
    assert not any(b"own:shown" in text for text in states.catalog().values())
    assert (
        command(states, "verify", "--json").json["checked"]["rows"] == 3
    )  # the store holds the three others, and no more
    assert "own:shown" not in results(states, command, "Tune an SQL database that is slow")


@pytest.mark.requirement("R013")
def test_a_skill_of_omp_that_its_frontmatter_hides_is_found_by_meaning(states: World, command: Command) -> None:
    assert results(states, command, "transactions wait for each other", "--state", "hidden") == ["own:secret-tuning"]
    assert command(states, "show", "own:secret-tuning", "--json").json["hidden_in"] == ["omp"]


@pytest.mark.requirement("R015")
def test_an_archived_skill_is_found(states: World, command: Command) -> None:
    assert results(states, command, "backups of a database")[0] == "old:old-tuning"


@pytest.mark.requirement("R084")
def test_a_skill_in_review_is_in_neither_catalog_nor_store_nor_answer(states: World, command: Command) -> None:
    assert command(states, "show", "cold:no-subject", "--json").json["status"] == "review"
    assert "cold:no-subject" not in ids(states)
    assert not any(b"no-subject" in text for text in states.catalog().values())
    assert "cold:no-subject" not in results(states, command, "does the thing", "--limit", "200")


@pytest.mark.requirement("R037", "R038")
def test_the_catalog_lies_in_the_data_folder_with_a_card_for_each_skill_and_a_few_pages(states: World) -> None:
    pages = {name: text for name, text in states.catalog().items() if name.endswith(".md")}
    titles = [text.partition(b"\n# ")[2].partition(b"\n")[0].decode() for text in pages.values()]

    for name in ("secret-tuning", "cold-tuning", "old-tuning"):
        assert titles.count(name) == 1
    categories = {row["id"]: row["categories"] for row in published(states, "records.jsonl")}
    used = {category for given in categories.values() for category in given}
    assert {name.removesuffix(".md") for name in pages if name.startswith("categories/")} == {
        f"categories/{category}" for category in used
    }
    for folder in ("own", "cold", "old"):
        assert {path.name for path in states.lib(folder).rglob("*") if path.is_file()} == {"SKILL.md"}


@pytest.mark.requirement("R223")
def test_every_record_carries_every_field(states: World, library: World) -> None:
    for world in (states, library):
        for row in published(world, "records.jsonl"):
            assert list(row) == list(Record.__struct_fields__)


@pytest.mark.requirement("R016")
def test_the_archive_of_a_hermes_home_is_read_and_left_as_it_is(tmp_path: Path, command: Command) -> None:
    home = tmp_path / "hermes"
    folder = home / "skills" / ".archive" / "old-query"
    folder.mkdir(parents=True)
    text = "---\nname: old-query\ndescription: Query an SQL database.\n---\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    world = World(tmp_path)
    world.config.write_text(
        f'[[sources]]\nname = "hermes"\nharness = "hermes"\nprofiles = true\npath = {json.dumps(str(home))}\n',
        encoding="utf-8",
    )
    before = {path: (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in [home, *home.rglob("*")]}

    assert command(world, "build").code == 0

    assert results(world, command, "query") == ["hermes.archive:old-query"]
    assert command(world, "show", "hermes.archive:old-query", "--json").json["state"] == "archived"
    assert command(world, "clean", "--memo").code == 0
    assert {path: (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in [home, *home.rglob("*")]} == before


@pytest.mark.requirement("R067")
def test_a_library_cloned_below_a_configured_root_is_indexed_by_the_next_build(world: World, command: Command) -> None:
    clone = world.root / "clone"
    (clone / "skills" / "deep" / "index-advice").mkdir(parents=True)
    source = world.lib("main") / "sql-tuning" / "SKILL.md"
    text = source.read_text(encoding="utf-8").replace("sql-tuning", "index-advice").replace("Tune slow", "Advise on")
    (clone / "skills" / "deep" / "index-advice" / "SKILL.md").write_text(text, encoding="utf-8")
    shutil.move(clone, world.lib("main") / "somebody" / "library")

    assert command(world, "build").code == 0

    assert "main:somebody/library/skills/deep/index-advice" in ids(world)


@pytest.mark.requirement("R220")
def test_what_would_be_removed_is_shown_before_it_is(world: World, command: Command) -> None:
    (world.lib("main") / "sql-tuning").rename(world.root / "away")

    foreseen = command(world, "build", "--dry-run", "--json").json["steps"]

    assert (foreseen["card"]["remove"], foreseen["upsert"]["remove"]) == (1, 1)
    assert "main:sql-tuning" in ids(world)
    done = command(world, "build", "--json").json["steps"]
    assert (done["card"]["removed"], done["upsert"]["removed"]) == (1, 1)


@pytest.mark.requirement("R228", "R224")
def test_an_empty_answer_tells_nothing_that_fits_from_nothing_that_could_be_asked(
    library: World, command: Command
) -> None:
    nothing_fits = command(library, "search", "sql", "--source", "side", "--category", "devops", "--json").json
    not_asked = command(library, "search", "zzzz", "--json", RETRIEVAL_EMBEDDING_QUERY_PREFIX="query: ").json

    assert nothing_fits["results"] == not_asked["results"] == []
    assert all(lane == {"used": True, "reason": ""} for lane in nothing_fits["lanes"].values())
    assert not_asked["lanes"]["semantic"]["used"] is False
    assert not_asked["lanes"]["semantic"]["reason"]


@pytest.mark.requirement("R127", "R129")
def test_nothing_is_connected_to_unless_it_is_configured(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def refuse(*arguments: object, **_more: object) -> None:
        asked.append(arguments)
        raise OSError("no network in this test")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    world = World(tmp_path)
    world.library()

    for words in (
        ["build"],
        ["search", "slow sql query"],
        ["verify"],
        ["doctor"],
        ["status"],
        ["build", "--rebuild-store"],
    ):
        assert command(world, *words).code == 0, words

    assert asked == []
    assert results(world, command, "slow sql query")[0] == "main:sql-tuning"


@pytest.mark.requirement("R014")
def test_building_copies_no_skill_out_of_its_repository(library: World) -> None:
    copies = [path for path in library.data.rglob("*") if path.name.casefold() == "skill.md"]

    assert copies == []
    assert os.path.isdir(library.data / "catalog")
