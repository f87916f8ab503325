"""Folders of version control, environments and caches: no walk of a source, a package or a bundle goes into them."""

from __future__ import annotations

IGNORED = frozenset(
    (
        ".git",
        ".hg",
        ".svn",
        ".hub",
        ".archive",
        ".retrieval-archive",
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
    )
)
