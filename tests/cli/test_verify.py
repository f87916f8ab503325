"""`verify` says 0 after a build, and 1 with the name of what somebody changed by hand; it changes nothing itself."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings

from tests.cli.conftest import Command, Ended
from tests.world import World

pytestmark = pytest.mark.long

ELSEWHERE = [1.0] + [0.0] * 383  # a vector that no text has


def collection(world: World) -> Any:
    """The store's collection through Chroma's public client, as anybody could open it."""
    client = chromadb.PersistentClient(str(world.data / "chroma"), Settings(anonymized_telemetry=False))
    return client.get_collection(client.list_collections()[0].name)


def published(world: World, name: str) -> Path:
    return world.data / "snapshots" / world.generation / name


def edit_a_source(world: World) -> str:
    path = world.lib("main") / "sql-tuning" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8").replace("twice", "never"), encoding="utf-8")
    return "source: main:sql-tuning is not as it was indexed: SKILL.md, "


def edit_a_bundled_file(world: World) -> str:
    (world.lib("main") / "pod-audit" / "notes.md").write_text("other notes\n", encoding="utf-8")
    return "source: main:pod-audit is not as it was indexed: bundled files"


def add_a_source(world: World) -> str:
    world.skill("zz-new")
    return "source: main:zz-new is in its source but not in the index"


def remove_a_source(world: World) -> str:
    shutil.rmtree(world.lib("main") / "release-notes")
    return "source: main:release-notes is in the index but no longer in its source"


def card(world: World, name: str) -> Path:
    return next((world.data / "catalog").rglob(f"*{name}*.md"))


def edit_a_card(world: World) -> str:
    path = card(world, "a-1")
    path.write_text(path.read_text(encoding="utf-8") + "\nmine\n", encoding="utf-8")
    return f"card: {path.relative_to(world.data / 'catalog').as_posix()} is not as the build wrote it"


def add_a_card(world: World) -> str:
    (world.data / "catalog" / "mine.md").write_text("# mine\n", encoding="utf-8")
    return "card: mine.md is in the catalog, but no build made it"


def remove_a_card(world: World) -> str:
    path = card(world, "a-2")
    path.unlink()
    return f"card: {path.relative_to(world.data / 'catalog').as_posix()} is missing from the catalog"


def edit_metadata(world: World) -> str:
    collection(world).update(["main:a-3"], metadatas=[{"name": "other"}])
    return "row: main:a-3: its row in the store is not the one that was written"


def edit_a_document(world: World) -> str:
    held = collection(world)
    vector = held.get(["main:a-4"], include=["embeddings"])["embeddings"]
    held.update(["main:a-4"], documents=["other"], embeddings=vector)
    return "row: main:a-4: its row in the store is not the one that was written"


def edit_a_stored_vector(world: World) -> str:
    collection(world).update(["main:a-5"], embeddings=[ELSEWHERE])
    return "vector: main:a-5: its vector in the store is not the one that was computed"


def delete_a_row(world: World) -> str:
    collection(world).delete(["main:a-6"])
    return "row: main:a-6 is missing from the store"


def add_a_row(world: World) -> str:
    collection(world).add(["main:made-up"], embeddings=[ELSEWHERE], documents=["x"], metadatas=[{"a": "b"}])
    return "row: main:made-up is in the store, but no source has it"


def edit_a_published_vector(world: World) -> str:
    path = published(world, "vectors.npy")
    vectors = np.load(path)
    ids = [json.loads(line)["id"] for line in published(world, "records.jsonl").read_bytes().splitlines()]
    vectors[ids.index("main:a-7")] *= -1
    np.save(path, vectors)
    return "vector: main:a-7: the published vector is not the computed one"


def edit_a_published_record(world: World) -> str:
    path = published(world, "records.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"name":"a-8"', b'"name":"b-8"'))
    return "source: main:a-8 is not as it was indexed: name"


# In the order in which they are found.
OF_SOURCES = (edit_a_published_record, edit_a_bundled_file, edit_a_source, add_a_source, remove_a_source)
OF_CARDS = (edit_a_card, remove_a_card, add_a_card)
OF_VECTORS = (edit_a_published_vector,)
OF_ROWS = (edit_metadata, edit_a_document, edit_a_stored_vector, delete_a_row, add_a_row)
CHANGES: tuple[Callable[[World], str], ...] = (*OF_SOURCES, *OF_CARDS, *OF_VECTORS, *OF_ROWS)


def large(folder: Path) -> World:
    """A world with a skill for each change, built."""
    made = World(folder)
    made.library()
    for number in range(1, 9):
        made.skill(f"a-{number}")
    made.build()
    return made


def said(found: Ended) -> list[str]:
    return [f"{row['part']}: {row['what']}" for row in found.json["disagreements"]]


def test_every_change_by_hand_is_named_and_the_next_build_mends_them_all(tmp_path: Path, command: Command) -> None:
    world = large(tmp_path)
    expected = [change(world) for change in CHANGES]

    found = command(world, "verify", "--json")

    assert found.code == 1
    lines = said(found)
    for words in expected:
        assert [line for line in lines if line.startswith(words)], (words, lines)
    assert found.json["count"] == len(lines)
    # What follows from these changes and nothing else: files that were changed, pages and rows of the edited sources.
    rest = [line for line in lines if not line.startswith(tuple(expected))]
    assert {line.partition(":")[0] for line in rest} <= {"snapshot", "card", "row", "vector"}
    assert [line for line in rest if re.search("main:a-[1-8]", line)] == []
    assert found.json["next"] == "run `retrieval build --rebuild-store`, then verify again"
    assert command(world, "build", "--rebuild-store").code == 0
    assert command(world, "verify", "--json").json == {
        "disagreements": [],
        "count": 0,
        "checked": {"files": 13, "skills": 12, "cards": len(world.catalog()), "vectors": 12, "rows": 12},
        "next": "",
    }


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_each_change_by_hand_alone_is_noticed(change: Callable[[World], str], tmp_path: Path, command: Command) -> None:
    world = large(tmp_path)
    expected = change(world)

    found = command(world, "verify", "--json")

    assert found.code == 1
    assert [line for line in said(found) if line.startswith(expected)], found.out
    if change in OF_ROWS:
        assert command(world, "build", "--rebuild-store").code == 0
    else:
        world.build()
    assert command(world, "verify").code == 0


def cut_the_records(world: World) -> str:
    path = published(world, "records.jsonl")
    path.write_bytes(path.read_bytes()[:-40])
    return "records.jsonl"


def garble_the_records(world: World) -> str:
    path = published(world, "records.jsonl")
    path.write_bytes(b"x" * path.stat().st_size)
    return "records.jsonl"


def count_more(world: World) -> str:
    path = published(world, "manifest.json")
    path.write_bytes(path.read_bytes().replace(b'"review":0', b'"review":9'))
    return "manifest.json"


def lose_a_file(world: World) -> str:
    published(world, "facets.msgpack").unlink()
    return "facets.msgpack"


@pytest.mark.parametrize("damage", [cut_the_records, garble_the_records, count_more, lose_a_file])
def test_a_damaged_file_of_the_index_is_named(damage: Callable[[World], str], world: World, command: Command) -> None:
    name = damage(world)

    found = command(world, "verify", "--json")

    assert found.code == 1
    assert said(found)[0] == f"snapshot: {name} is not as it was published"


def test_after_a_build_it_agrees_and_leaves_no_trace(world: World, command: Command) -> None:
    def traces() -> dict[Path, tuple[int, int]]:
        paths = [*world.data.rglob("*"), *world.lib("main").rglob("*")]
        return {
            path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns) for path in paths if path.name != "writer.lock"
        }

    world.build()  # the second scan reads once more what is as young as the first
    before = traces()

    found = command(world, "verify")

    cards = len(world.catalog())
    assert (found.code, found.err) == (0, "")
    assert re.fullmatch(
        rf"0 disagreements; checked \d+ files, 4 skills, {cards} cards, 4 vectors, 4 rows", found.lines[-1]
    )
    assert {path for path in before if traces().get(path) != before[path]} == set()
    assert world.counts() == {}


def test_what_disagrees_is_left_as_it_is(world: World, command: Command) -> None:
    path = card(world, "sql-tuning")
    path.write_text("mine\n", encoding="utf-8")
    before = world.catalog()

    assert command(world, "verify").code == 1

    assert world.catalog() == before


def test_text_names_each_disagreement_and_the_next_step(world: World, command: Command) -> None:
    add_a_card(world)

    found = command(world, "verify")

    assert found.lines[0] == "card: mine.md is in the catalog, but no build made it"
    assert found.lines[-1] == "next: run `retrieval build`, then verify again"
    assert found.lines[-2].startswith("1 disagreement; checked ")


def test_a_source_whose_folder_is_away_cannot_be_verified(world: World, command: Command) -> None:
    away = world.root / "away"
    world.lib("main").rename(away)

    found = command(world, "verify")

    assert found.code == 1
    assert found.err == (
        f"error: source main cannot be verified: the folder {world.lib('main')} is not there\n"
        f"  at {world.config}:4\n"
        "  next: create or mount it, correct the path, or set enabled = false\n"
    )


def test_without_an_index_there_is_nothing_to_verify(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.library()

    found = command(world, "verify")

    assert found.code == 1
    assert found.err.splitlines()[0] == "error: there is no index yet"
    assert not world.data.exists()


def test_a_build_that_comes_between_is_told_and_no_disagreement(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.admin import verify as module

    compare = module._compare

    def build_between(*arguments: Any) -> None:
        world.skill("index-advice", "Advise on database indexes. Use when a table grows.")
        world.build()
        compare(*arguments)

    monkeypatch.setattr(module, "_compare", build_between)

    ended = command(world, "verify")

    assert ended.code == 5
    assert ended.err.startswith("error: a build came between, so what was compared does not belong together\n")
