"""Digests of code: a step whose code changed runs again, and only that step."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.engine.files import key

if TYPE_CHECKING:
    from collections.abc import Iterable

# The shapes that pass between steps: a changed shape makes memoised values unreadable, so it is part of every step.
SHAPES = ("pipeline.model", "serve.contract")


@functools.cache
def source_of(module: str) -> bytes:
    """The source text of one of our modules, with line ends made equal. Imports nothing but the top package."""
    top, *rest = module.split(".")
    place = Path(importlib.import_module(top).__path__[0]).joinpath(*rest)
    path = place / "__init__.py" if place.is_dir() else place.with_name(f"{place.name}.py")
    return path.read_bytes().replace(b"\r\n", b"\n")


@functools.cache
def digest(modules: tuple[str, ...]) -> str:
    """One digest over the source text of modules, given by dotted name, and of the shapes all steps share."""
    return key(*_parts((*SHAPES, *modules)))


def _parts(modules: Iterable[str]) -> Iterable[bytes]:
    for module in sorted(set(modules)):
        yield module.encode()
        yield source_of(module)
