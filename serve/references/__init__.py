"""Answers from references: sections of Markdown files, quoted as the files are now, with where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from serve.references.answer import References

__all__ = ["References"]


def __getattr__(name: str) -> object:
    """`References`, loaded when first asked for: the build needs what else lies here, and not numpy for it."""
    if name == "References":
        from serve.references.answer import References

        return References
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
