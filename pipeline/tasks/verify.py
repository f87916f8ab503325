"""Verify as a task, for whoever drives the build with doit: fails unless the published index is what the sources say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from serve.errors import OperatorError

if TYPE_CHECKING:
    from pipeline.engine.build import Build


def settings(_build: Build) -> list[str]:
    """None: it looks at everything each time."""
    return []


def intact(_build: Build) -> bool:
    """Never: only looking can tell."""
    return False


def run(build: Build) -> None:
    """Compare, and raise OperatorError with the first disagreement."""
    from pipeline.admin.verify import verify

    found = verify(build)
    if found["disagreements"]:
        first = found["disagreements"][0]
        raise OperatorError(
            f"the index and the sources disagree in {found['count']} places, first: {first['what']}",
            next_step="run `retrieval verify` for all of them, and `retrieval build` to put them right",
        )
