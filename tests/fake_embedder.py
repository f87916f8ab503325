"""A tiny deterministic embedder: same words, near vectors; no model, no wait."""

from __future__ import annotations

import hashlib

import numpy as np

from serve.contract import EmbedderIdentity


class FakeEmbedder:
    """Sums a fixed pseudo-random direction per word. Counts the passages it was asked for in `embedded`."""

    def __init__(self, *, model="fake", dimension=64, batch=16):
        self.identity = EmbedderIdentity(kind="fake", model=model, digest="", dimension=dimension)
        self.batch = batch
        self.embedded = []

    def batches(self, texts):
        for start in range(0, len(texts), self.batch):
            indices = list(range(start, min(start + self.batch, len(texts))))
            self.embedded += [texts[index] for index in indices]
            yield indices, np.stack([self._vector(texts[index]) for index in indices])

    def query(self, text):
        return self._vector(text)

    def close(self):
        pass

    def _vector(self, text):
        total = np.full(self.identity.dimension, 1e-3)
        for word in text.lower().split():
            seed = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "little")
            total += np.random.default_rng(seed).standard_normal(self.identity.dimension)
        return (total / np.linalg.norm(total)).astype(np.float32)
