from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from serve.contract import EmbedderIdentity
from serve.embedder import EmbedderConfig, identity, minilm, open_embedder, require_same_space
from serve.errors import ContractError, EmbedderError, ExitCode


def test_naming_the_embedder_loads_neither_numpy_nor_a_model_runtime():
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from serve.embedder import EmbedderConfig, identity\n"
        "identity(EmbedderConfig())\n"
        "identity(EmbedderConfig(kind='endpoint', model='m', url='http://localhost:1/v1'))\n"
        "identity(EmbedderConfig(kind='fastembed', model='m', cache_dir=Path('nowhere')))\n"
        "loaded = {'numpy', 'onnxruntime', 'tokenizers', 'fastembed', 'http.client'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_builtin_embedder_is_named_by_model_digest_and_dimension():
    found = identity(EmbedderConfig())
    assert found == EmbedderIdentity(
        kind="builtin", model=minilm.MODEL, digest=minilm.WEIGHTS_DIGEST, dimension=minilm.DIMENSION
    )


def test_the_same_configuration_always_has_the_same_identity_whatever_does_not_touch_the_vectors(tmp_path):
    plain = EmbedderConfig(kind="endpoint", model="m", url="http://one/v1")
    other = msgspec.structs.replace(
        plain, url="http://two/v1", api_key="k", batch=7, timeout=1.0, retries=0, cache_dir=tmp_path
    )
    assert identity(plain) == identity(other)


@pytest.mark.parametrize(
    "change", [{"model": "n"}, {"query_prefix": "q: "}, {"passage_prefix": "p: "}, {"dimension": 5}]
)
def test_what_touches_the_vectors_changes_the_identity(change):
    plain = EmbedderConfig(kind="endpoint", model="m", url="http://one/v1")
    assert identity(plain) != identity(msgspec.structs.replace(plain, **change))


def test_other_files_in_a_model_folder_change_the_identity(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"one")
    config = EmbedderConfig(kind="fastembed", model="m", path=tmp_path)
    before = identity(config)
    assert before == identity(config)
    (tmp_path / "model.onnx").write_bytes(b"two")
    assert identity(config) != before


def test_a_missing_model_folder_is_named(tmp_path):
    missing = tmp_path / "nowhere"
    with pytest.raises(EmbedderError) as caught:
        identity(EmbedderConfig(kind="fastembed", model="m", path=missing))
    assert caught.value.where == str(missing)
    assert "holds no files" in caught.value.what


def test_a_key_or_a_password_is_never_printed():
    config = EmbedderConfig(
        kind="endpoint",
        model="m",
        url="https://user:pass-word@host/v1",
        api_key="sk-secret",  # pragma: allowlist secret
    )
    for shown in (repr(config), str(config), f"{config}", repr([config]), repr(config.__rich_repr__())):
        assert "sk-secret" not in shown
        assert "pass-word" not in shown
        assert "'m'" in shown


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (EmbedderConfig(kind="magic"), "no embedder of the kind 'magic'"),
        (EmbedderConfig(model="other"), "has one model"),
        (EmbedderConfig(dimension=3), "384 numbers a text, not 3"),
        (EmbedderConfig(kind="fastembed"), "needs the name of a model"),
        (EmbedderConfig(kind="endpoint", url="http://h/v1"), "needs the name of a model"),
        (EmbedderConfig(kind="endpoint", model="m"), "needs an address"),
        (EmbedderConfig(batch=0), "at least 1"),
        (EmbedderConfig(timeout=0), "above 0"),
        (EmbedderConfig(retries=-1), "0 or more"),
        (EmbedderConfig(kind="endpoint", model="m", url="http://h/v1", dimension=0), "dimension"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_with_the_remedy(config, says):
    for refuse in (identity, open_embedder):
        with pytest.raises(EmbedderError) as caught:
            refuse(config)
        assert says in caught.value.what
        assert caught.value.next_step
        assert caught.value.code is ExitCode.USAGE


def test_a_query_is_refused_by_an_embedder_other_than_the_index_was_made_with():
    index = identity(EmbedderConfig())
    mine = msgspec.structs.replace(index, model="m", dimension=3)
    with pytest.raises(ContractError) as caught:
        require_same_space(index, mine)
    assert "model 'm' instead of" in caught.value.what
    assert "dimension 3 instead of 384" in caught.value.what
    assert caught.value.code is ExitCode.CONTRACT


def test_the_recipe_and_a_dimension_that_is_not_known_yet_do_not_part_two_embedders():
    index = msgspec.structs.replace(identity(EmbedderConfig()), recipe="short-1")
    require_same_space(index, msgspec.structs.replace(index, recipe="", dimension=0))
