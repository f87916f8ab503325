"""Looking into a store without leaving a trace."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pipeline.chroma.config import ChromaConfig


@contextmanager
def untouched(config: ChromaConfig) -> Iterator[ChromaConfig]:
    """A store to look into without leaving a trace: Chroma writes even when it only reads, so files are copied first."""
    if config.mode != "embedded" or not Path(config.path).is_dir():
        yield config
        return
    with tempfile.TemporaryDirectory(prefix="retrieval-") as folder:
        copy = Path(folder) / "chroma"
        shutil.copytree(config.path, copy)
        yield replace(config, path=str(copy))
