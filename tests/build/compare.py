"""Two data directories that were built from the same sources, held against each other byte by byte."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np

from pipeline.chroma import Rows, open_store
from pipeline.chroma.untouched import untouched
from pipeline.engine import files, generation
from pipeline.tasks import embed
from tests.world import World

# Manifests that follow from the sources alone. Those of cards and hubs also hold the stats of the files they wrote.
PURE = ("scan", "problems", "categorize", "select", "descriptor", "document", "section", "terms", "embed")


def elsewhere(world: World, name: str = "elsewhere") -> World:
    """The same sources and configuration with a data directory of its own."""
    twin = copy.copy(world)
    twin.data = world.root / name
    return twin


def manifests(world: World) -> dict[str, bytes]:
    """All manifests that follow from the sources alone, and their sums."""
    root = world.data / "build"
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for folder in PURE
        for path in sorted((root / folder).glob("*"))
    }


def store_rows(world: World, **more: str) -> Rows:
    """All rows that the vector store holds, in the order of their IDs. Looks at a copy: Chroma writes when it only reads."""
    build = world.open(**more)
    try:
        with untouched(build.chroma) as config, open_store(config, embed.identity_key(build)) as store:
            assert store.notices == []
            return store.fetch(sorted(store.held()))
    finally:
        build.close()


def assert_same_index(left: World, right: World, **more: str) -> None:
    """Snapshot, catalog and manifests are equal byte for byte; the store's rows are equal, vectors within 1e-6."""
    assert left.generation == right.generation != ""
    assert left.snapshot() == right.snapshot()
    assert left.catalog() == right.catalog()
    assert manifests(left) == manifests(right)
    mine, theirs = store_rows(left, **more), store_rows(right, **more)
    assert list(mine.ids) == list(theirs.ids)
    assert list(mine.metadatas) == list(theirs.metadatas)
    assert list(mine.documents) == list(theirs.documents)
    np.testing.assert_allclose(mine.vectors, theirs.vectors, atol=1e-6)


def assert_sound(world: World) -> None:
    """What is published is whole: pointer, manifest and every file of the generation agree."""
    root = world.data / "snapshots"
    held = generation.read_manifest(root / world.generation)
    assert held is not None
    assert generation.damaged(root / world.generation, held) == []
    assert {path.name for path in (root / world.generation).iterdir()} == {*held.files, "manifest.json"}


def left_overs(world: World) -> list[Path]:
    """Files and folders of writers that did not finish."""
    return sorted(world.data.rglob(f"{files.PART}*"))
