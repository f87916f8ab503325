"""Checks sources against each other and against Retrieval's own folders, links resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.config.files import real
from pipeline.config.suggest import shown
from pipeline.config.values import ConfigWarning, Source
from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def check(sources: Sequence[Source], data_dir: Path) -> list[ConfigWarning]:
    """Warnings about folders that are read twice.

    Raises ConfigError for two sources with one name and for a source that would feed Retrieval its own output.
    """
    enabled = [source for source in sources if source.enabled]
    _refuse_equal_names(sources)
    folders = {source.name: real(source.path) for source in enabled}
    own = real(data_dir)
    for source in enabled:
        _refuse_own_output(source, folders[source.name], own)
    # What one source reads as skills, another may well read as references.
    kinds = {source.kind: None for source in enabled}
    return [
        warning for kind in kinds for warning in _overlaps([item for item in enabled if item.kind == kind], folders)
    ]


def _refuse_equal_names(sources: Sequence[Source]) -> None:
    """Unfolding a Hermes home may give a name that another block has."""
    seen: dict[str, Source] = {}
    for source in sources:
        other = seen.setdefault(source.name.casefold(), source)
        if other is not source:
            raise ConfigError(
                f"two sources are called {shown(source.name)}: one from {shown(other.declared)} on line "
                f"{other.where.rpartition(':')[2]}, one from {shown(source.declared)}",
                where=source.where,
                next_step="rename one of the two blocks",
            )


def _refuse_own_output(source: Source, folder: Path, own: Path) -> None:
    name = f"source {shown(source.name)}"
    if folder.is_relative_to(own / "projections"):
        raise ConfigError(
            f"{name} is a projection lane, whose temporary copies would come back as {source.kind}",
            where=source.where,
            next_step="remove this block; Retrieval fills and clears its lanes itself",
        )
    if folder.is_relative_to(own):
        raise ConfigError(
            f"{name} lies in Retrieval's own data folder {own}",
            where=source.where,
            next_step=f"remove this block, or keep the {source.kind} somewhere else",
        )
    if own.is_relative_to(folder):
        raise ConfigError(
            f"{name} contains Retrieval's own data folder {own}",
            where=source.where,
            next_step="name a narrower folder, or move the data with RETRIEVAL_HOME",
        )


def _overlaps(sources: Sequence[Source], folders: dict[str, Path]) -> list[ConfigWarning]:
    first: dict[Path, Source] = {}
    warnings: list[ConfigWarning] = []
    for source in sources:
        other = first.setdefault(folders[source.name], source)
        if other is not source:
            warnings.append(_overlap(source, other, "is the same folder as"))
    for source in sources:
        for above in folders[source.name].parents:
            if above in first and _reads(first[above], folders[source.name].relative_to(above)):
                warnings.append(_overlap(source, first[above], "lies inside"))
                break
    return warnings


def _reads(outer: Source, inner: Path) -> bool:
    """Whether a source's walk comes to what lies in a folder below its own."""
    # Only sources inside each other pay for what the walk needs.
    from pipeline.sources.globs import Globs
    from serve.ignored import IGNORED

    return IGNORED.isdisjoint(inner.parts) and Globs(outer.include, outer.exclude).keeps(f"{inner.as_posix()}/skill")


def _overlap(source: Source, other: Source, how: str) -> ConfigWarning:
    return ConfigWarning(
        f"source {shown(source.name)} {how} source {shown(other.name)}, so its {source.kind} are found twice",
        source.where,
        "remove one of the two, or exclude the folder in the other",
    )
