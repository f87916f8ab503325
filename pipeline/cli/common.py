"""What all commands share: options, the settings they load, and how a build is opened."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.engine.build import Build
    from pipeline.settings import Settings

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, errors included.")]
ConfigOption = Annotated[str, typer.Option("--config", metavar="FILE", help="The sources.toml to use.")]


def settings(config: str = "", *, with_sources: bool = True) -> Settings:
    """The settings, from `--config` or where they are looked for."""
    from pipeline.settings import load_settings

    return load_settings(config or None, with_sources=with_sources)


@contextmanager
def opened(
    config: str = "", *, only: Sequence[str] = (), quiet: bool = True, with_sources: bool = True
) -> Iterator[Build]:
    """A build for the length of a block, with progress bars where a person watches stderr and `quiet` is False.

    only: names of sources or of the blocks they came from. Raises UnknownSourceError.
    """
    from pipeline.cli.progress import Bars
    from pipeline.engine.build import Build

    progress = Bars() if sys.stderr.isatty() and not quiet else None
    chosen = settings(config, with_sources=with_sources)
    names = frozenset(source.name for source in chosen.pick(only)) if only else frozenset()
    build = Build(chosen, progress, names)
    try:
        yield build
    finally:
        build.close()
