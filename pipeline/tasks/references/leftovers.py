"""What the steps kept for sources of references that are no longer configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.engine.build import Build

_OWN = ("document", "document-cache", "section")
_SHARED = ("problems", "terms", "embed")  # with sources of skills


def forget(build: Build) -> None:
    """Remove it."""
    own = {source.name for source in build.references}
    everybody = own | {source.name for source in build.sources}
    for names, folders in ((own, _OWN), (everybody, _SHARED)):
        for path in (path for folder in folders for path in (build.paths.build / folder).glob("*")):
            if path.name.removesuffix(".sum").rpartition(".")[0] not in names:
                path.unlink()
