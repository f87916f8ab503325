"""How long a section may be is counted in the tokens of the embedder: the builtin one's own, else by a rule."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from pipeline.steps import tokens
from serve.embedder import minilm

if TYPE_CHECKING:
    from pipeline.steps.section import Spans


def name(kind: str) -> str:
    """By what the tokens of an embedder of this kind are counted: part of the key of everything that is cut by it."""
    return f"{minilm.MODEL} {minilm.TOKENIZER_DIGEST[:16]}" if kind == "builtin" else tokens.RULE


def window(kind: str) -> int:
    """How many characters of a row an embedder of this kind reads at once, 0 for all of them.

    The builtin model reads 128 tokens; whoever configures another one chooses how far it reads.
    """
    return 420 if kind == "builtin" else 0


@functools.cache
def spans(kind: str) -> Spans:
    """What finds the tokens in a text. Raises EmbedderError for a tokenizer that is not the one it should be."""
    if kind != "builtin":
        return tokens.spans
    from serve.embedder.tokenizer import load

    tokenizer: Any = load()
    tokenizer.no_truncation()

    def found(text: str) -> list[tuple[int, int]]:
        readable = text.encode("utf-8", "replace").decode("utf-8")  # the same characters, one by one
        offsets: list[tuple[int, int]] = tokenizer.encode(readable, add_special_tokens=False).offsets
        return offsets

    return found
