"""What decides how the references' part of a snapshot looks, told without loading what makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engine import code

if TYPE_CHECKING:
    from pipeline.engine.build import Build


def settings(build: Build) -> list[str]:
    """Digests of the code that lays the parts out, and the sources that they are made from."""
    modules = ("pipeline.tasks.references.parts", "serve.references.contract", "serve.lanes.postings")
    return [code.digest(modules), repr([(source.name, str(source.path)) for source in build.references])]
