"""What doit runs for sources of references: a file per step. They are loaded when a source of that kind is there."""

from __future__ import annotations

import importlib
from types import ModuleType

_TASKS = ("document", "embed", "section", "terms")


def __getattr__(name: str) -> ModuleType:
    """A task's module."""
    if name in _TASKS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
