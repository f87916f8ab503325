"""What all commands share: options, the settings they load, and how a build is opened."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from pipeline.settings import Settings

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, errors included.")]
ConfigOption = Annotated[str, typer.Option("--config", metavar="FILE", help="The sources.toml to use.")]


def settings(config: str = "", *, with_sources: bool = True) -> Settings:
    """The settings, from `--config` or where they are looked for."""
    from pipeline.settings import load_settings

    return load_settings(config or None, with_sources=with_sources)


def open_build(config: str = "", *, only: frozenset[str] = frozenset(), quiet: bool = False) -> Build:
    """A build with progress bars where a person watches stderr."""
    from pipeline.cli.output import Bars
    from pipeline.engine.build import Build

    progress = Bars() if sys.stderr.isatty() and not quiet else None
    return Build(settings(config), progress, only)
