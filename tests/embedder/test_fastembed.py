from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from serve.embedder import EmbedderConfig, identity, minilm, open_embedder
from serve.errors import EmbedderError
from tests.embedder.conftest import TEXTS

NAME = "retrieval-tests/minilm-int8"

pytestmark = pytest.mark.requirement("R049")


@pytest.fixture(scope="module")
def config(model_folder):
    """The default model's files under a name that fastembed was told."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    if NAME not in [model["model"] for model in TextEmbedding.list_supported_models()]:
        TextEmbedding.add_custom_model(
            NAME,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf="sentence-transformers/all-MiniLM-L6-v2"),
            dim=384,
            model_file="model.onnx",
        )
    return EmbedderConfig(kind="fastembed", model=NAME, path=model_folder)


@pytest.fixture(scope="module")
def embedder(config):
    return open_embedder(config)


def every(embedder, texts):
    rows = np.full((len(texts), embedder.identity.dimension), np.nan, dtype=np.float32)
    for indices, vectors in embedder.batches(texts):
        rows[indices] = vectors
    return rows


def test_fastembed_gives_the_vectors_of_the_builtin_embedder(builtin, config):
    from fastembed import TextEmbedding

    model = TextEmbedding(NAME, specific_model_path=str(config.path))
    theirs = np.array(list(model.embed(TEXTS, batch_size=4)))
    ours = np.stack([builtin.query(text) for text in TEXTS])
    assert (theirs * ours).sum(axis=1).min() > 0.9999


def test_the_provider_gives_the_vectors_of_the_builtin_embedder(builtin, embedder):
    ours = np.stack([builtin.query(text) for text in TEXTS])
    assert (every(embedder, TEXTS) * ours).sum(axis=1).min() > 0.9999
    assert embedder.query(TEXTS[3]) @ ours[3] > 0.9999


def test_a_vector_does_not_depend_on_its_neighbours(embedder):
    alone = np.concatenate([every(embedder, [text]) for text in TEXTS])
    assert np.array_equal(every(embedder, TEXTS), alone)


def test_the_dimension_is_learnt_from_the_model(config, embedder):
    assert identity(config).dimension == 0
    assert embedder.identity.dimension == minilm.DIMENSION
    assert embedder.identity.digest == identity(config).digest != ""


def test_prefixes_stand_before_the_texts(config, embedder):
    prefixed = open_embedder(
        EmbedderConfig(kind="fastembed", model=NAME, path=config.path, query_prefix="query: ", passage_prefix="to: ")
    )
    assert np.array_equal(prefixed.query("a skill"), embedder.query("query: a skill"))
    assert np.array_equal(every(prefixed, ["a skill"]), every(embedder, ["to: a skill"]))


def test_another_dimension_than_configured_is_refused(config):
    with pytest.raises(EmbedderError, match="384 numbers where 100 are expected"):
        open_embedder(EmbedderConfig(kind="fastembed", model=NAME, path=config.path, dimension=100))


def test_an_unknown_model_is_refused_with_the_nearest_name():
    with pytest.raises(EmbedderError, match="knows no model named 'BAAI/bge-smal-") as caught:
        open_embedder(EmbedderConfig(kind="fastembed", model="BAAI/bge-smal-en-v1.5"))
    assert caught.value.next_step == "did you mean 'BAAI/bge-small-en-v1.5'?"


def test_a_folder_without_the_models_files_is_named(tmp_path):
    (tmp_path / "readme").write_text("no model", "utf-8")
    with pytest.raises(EmbedderError, match="cannot load the model") as caught:
        open_embedder(EmbedderConfig(kind="fastembed", model="BAAI/bge-small-en-v1.5", path=tmp_path))
    assert caught.value.where == str(tmp_path)
    assert "folder of model files" in caught.value.next_step


def test_a_model_that_cannot_be_fetched_is_an_error_with_a_remedy(tmp_path):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from serve.embedder import EmbedderConfig, open_embedder\n"
        "from serve.errors import EmbedderError\n"
        "try:\n"
        "    open_embedder(EmbedderConfig(kind='fastembed', model='BAAI/bge-small-en-v1.5', cache_dir=Path(sys.argv[1])))\n"
        "except EmbedderError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert "fastembed cannot load the model 'BAAI/bge-small-en-v1.5'" in done.stdout
    assert "make the model hub reachable" in done.stdout
    assert done.stderr == ""


def test_a_missing_fastembed_names_what_to_install():
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'fastembed':\n"
        "            raise ModuleNotFoundError('refused', name=name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from serve.embedder import EmbedderConfig, open_embedder\n"
        "from serve.errors import EmbedderError\n"
        "try:\n"
        "    open_embedder(EmbedderConfig(kind='fastembed', model='BAAI/bge-small-en-v1.5'))\n"
        "except EmbedderError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert "fastembed is not installed" in done.stdout
    assert "install retrieval[build]" in done.stdout
