"""Server mode for real: builds write to a `chroma run`, search ranks through it, and its death is said and survived."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chroma.support import Server
from tests.world import World

pytestmark = pytest.mark.long


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path / "server")
    yield started
    started.kill()


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path / "world")
    made.library()
    return made


def remote(server: Server) -> dict[str, str]:
    return {
        "RETRIEVAL_CHROMA_MODE": "server",
        "RETRIEVAL_CHROMA_HOST": "127.0.0.1",
        "RETRIEVAL_CHROMA_PORT": str(server.port),
    }


def ids(answer: dict) -> list[str]:
    return [row["id"] for row in answer["results"]]


@pytest.mark.requirement("R047")
def test_a_build_moves_from_embedded_to_a_server_without_embedding_and_both_rank_alike(
    world: World, server: Server
) -> None:
    world.build()
    here = world.json("search", "my spreadsheet has broken rows")

    counts = world.counts(**remote(server))
    there = world.json("search", "my spreadsheet has broken rows", **remote(server))

    assert counts == {"upsert": (4, 4, 0)}
    assert there["lanes"]["semantic"] == {"used": True, "reason": ""}
    assert ids(here) == ids(there)
    assert [row["scores"]["semantic"] for row in there["results"]] == pytest.approx(
        [row["scores"]["semantic"] for row in here["results"]], abs=1e-4
    )


def test_filters_hold_for_what_the_server_ranks(world: World, server: Server) -> None:
    world.build(**remote(server))
    category = json.loads(world.run("show", "main:pod-audit", "--json", **remote(server)).stdout)["categories"][0]

    answer = world.json("search", "database query takes too long", "--category", category, **remote(server))

    assert answer["results"]
    assert all(category in row["categories"] for row in answer["results"])


@pytest.mark.requirement("R224")
def test_a_server_that_dies_fails_the_build_with_code_4_and_leaves_search_to_the_other_lane(
    world: World, server: Server
) -> None:
    world.build(**remote(server))
    before = world.generation
    server.kill()
    world.skill("release-notes", body="# Release notes\n\nAnother text. " * 20)

    done = world.run("build", **remote(server))
    answer = world.json("search", "tune a slow sql query", **remote(server))

    assert done.returncode == 4
    assert str(server.port) in done.stderr
    assert "next:" in done.stderr
    assert world.generation == before
    assert ids(answer)[0] == "main:sql-tuning"
    assert answer["lanes"]["semantic"]["used"] is False
    assert "does not answer" in answer["lanes"]["semantic"]["reason"]


def test_status_names_a_server_that_is_down(world: World, server: Server) -> None:
    world.build(**remote(server))
    server.kill()

    done = world.run("status", **remote(server))

    assert str(server.port) in done.stdout
    assert "4 skills" in done.stdout


def test_two_data_directories_on_one_server_do_not_touch_each_other(tmp_path: Path, server: Server) -> None:
    one, two = World(tmp_path / "one"), World(tmp_path / "two")
    one.library()
    two.skill("only-here", "Query a database of one kind.")
    one.build(**remote(server))
    two.build(**remote(server))

    assert one.counts(**remote(server)) == {}
    assert ids(two.json("search", "database", **remote(server))) == ["main:only-here"]
    assert "main:only-here" not in ids(one.json("search", "database", **remote(server)))


def test_a_collection_dropped_on_the_server_is_written_again(world: World, server: Server) -> None:
    import chromadb

    world.build(**remote(server))
    client = chromadb.HttpClient(port=server.port, settings=chromadb.Settings(anonymized_telemetry=False))
    (collection,) = client.list_collections()
    client.delete_collection(collection.name)

    assert world.counts(**remote(server)) == {"upsert": (4, 4, 0)}
