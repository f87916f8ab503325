"""The default model's tokenizer, checked by its digest. Apart from the model, which takes far longer to load."""

from __future__ import annotations

from pathlib import Path

from blake3 import blake3
from tokenizers import Tokenizer

from serve.embedder import minilm
from serve.errors import EmbedderError


def load(folder: Path = minilm.FOLDER) -> Tokenizer:
    """The tokenizer, cutting texts off where the model does. Raises EmbedderError for one that is not the model's."""
    path = folder / "tokenizer.json"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise reinstall(f"the default model's tokenizer cannot be read ({error.strerror})", path) from error
    found = blake3(content).hexdigest()
    if found != minilm.TOKENIZER_DIGEST:
        raise reinstall(
            f"the default model's tokenizer has the digest {found[:16]}…, not {minilm.TOKENIZER_DIGEST[:16]}…", path
        )
    tokenizer = Tokenizer.from_str(content.decode("utf-8"))
    tokenizer.enable_truncation(minilm.MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer


def reinstall(what: str, path: Path) -> EmbedderError:
    """The error for a part of the default model that is not as it was shipped."""
    return EmbedderError(what, where=str(path), next_step="install retrieval again")
