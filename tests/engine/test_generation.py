"""Generations: named by content, whole or absent, current by one rename, and removed when no longer needed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from pipeline.engine import files, generation
from pipeline.engine.generation import GenerationWriter
from serve import contract
from serve.contract import EmbedderIdentity, SnapshotManifest, StoreInfo

MANIFEST = SnapshotManifest(
    contract=contract.CONTRACT_VERSION,
    skills=0,
    embedder=EmbedderIdentity(kind="builtin", model="m", digest="d", dimension=2),
    endpoint="",
    store=StoreInfo(mode="embedded", collection="c"),
    inputs="i",
    counts={},
    files={},
)


def make(root: Path, text: bytes, old: Path | None = None) -> str:
    held = generation.read_manifest(old) if old else None
    writer = GenerationWriter(root, old, held.files if held else {})
    writer.put("a.txt", text)
    writer.put_array("b.npy", np.arange(6, dtype="<u4").reshape(2, 3))
    writer.put_lines("c.jsonl", "c.npy", [b"1\n", b"22\n"])
    return writer.finish(MANIFEST)


def test_equal_content_has_an_equal_name(tmp_path: Path) -> None:
    assert make(tmp_path, b"x") == make(tmp_path, b"x") != make(tmp_path, b"y")


def test_a_file_that_is_equal_to_the_old_generations_is_linked(tmp_path: Path) -> None:
    first = tmp_path / make(tmp_path, b"x")
    second = tmp_path / make(tmp_path, b"y", first)

    assert (first / "b.npy").stat().st_ino == (second / "b.npy").stat().st_ino
    assert (first / "a.txt").stat().st_ino != (second / "a.txt").stat().st_ino
    assert np.array_equal(np.load(second / "b.npy"), np.arange(6).reshape(2, 3))
    assert np.load(second / "c.npy").tolist() == [0, 2, 5]


@pytest.mark.parametrize("name", ["a.txt", "b.npy", contract.MANIFEST])
def test_damage_is_found_by_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / make(tmp_path, b"x")
    held = generation.read_manifest(folder)
    assert held is not None
    assert generation.damaged(folder, held) == []
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))

    assert generation.damaged(folder, held) == [name]


def test_an_abandoned_generation_leaves_nothing(tmp_path: Path) -> None:
    writer = GenerationWriter(tmp_path, None, {})
    writer.put("a.txt", b"x")
    writer.abandon()

    assert list(tmp_path.iterdir()) == []


def test_old_generations_and_parts_go_but_the_newest_other_one_stays(tmp_path: Path) -> None:
    names = [make(tmp_path, str(number).encode()) for number in range(4)]
    generation.point(tmp_path, names[3])
    (tmp_path / f"{files.PART}dead").mkdir()
    for age, name in enumerate(reversed(names)):
        then = time.time() - 1000 * age
        os.utime(tmp_path / name, (then, then))

    removed = generation.collect(tmp_path, names[3])

    assert removed == 3
    assert {path.name for path in tmp_path.iterdir()} == {names[3], names[2], contract.POINTER}


def test_a_fingerprint_differs_when_anything_was_touched(tmp_path: Path) -> None:
    assert generation.fingerprint(tmp_path) == ""
    name = make(tmp_path, b"x")
    generation.point(tmp_path, name)
    before = generation.fingerprint(tmp_path)
    assert before
    (tmp_path / name / "a.txt").write_bytes(b"z")

    assert generation.fingerprint(tmp_path) != before
