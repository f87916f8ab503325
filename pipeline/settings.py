"""Everything that a run is told from outside, read once and checked: where things lie, which sources, how to embed.

`load_settings` changes nothing and guesses nothing: what it cannot read is one ConfigError with its place and remedy.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config import hermes
from pipeline.config.env import EnvFile, Environment, read_env_file
from pipeline.config.files import is_file
from pipeline.config.lookup import (
    Lookup,
    config_folder,
    config_places,
    data_folder,
    find_config,
    home_of,
    unknown_variables,
)
from pipeline.config.paths import absolute
from pipeline.config.services import chroma_settings, embedding_settings, limits, without_effect
from pipeline.config.values import ChromaSettings, ConfigWarning, EmbeddingSettings, Limits, Machine, Source
from pipeline.config.variables import BY_NAME
from pipeline.errors import ConfigError
from pipeline.resources import bundled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ChromaSettings", "ConfigWarning", "EmbeddingSettings", "Limits", "Settings", "Source", "load_settings"]

TAXONOMY_NAME = "taxonomy.toml"
OVERRIDES_NAME = "category-overrides.toml"


@dataclass(frozen=True)
class Settings:
    """What `load_settings` found. Paths are absolute.

    config_file: None when there is none and none was needed. overrides_path: may not exist. uncategorized: "review" or
    "index". sources: in order of precedence; those with `enabled` False are listed and not read. lock_timeout: seconds.
    iwe_command: "" for the program on PATH.
    env_files: the `.env` files in force, the strongest first. origins: for each known variable that is set, where.
    """

    data_dir: Path
    config_file: Path | None
    taxonomy_path: Path
    overrides_path: Path
    uncategorized: str
    sources: tuple[Source, ...]
    chroma: ChromaSettings
    embedder: EmbeddingSettings
    limits: Limits
    lock_timeout: float
    iwe_command: str = ""
    warnings: tuple[ConfigWarning, ...] = ()
    env_files: tuple[Path, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def projections(self) -> Path:
        """The folder of the harnesses' lanes."""
        return self.data_dir / "projections"

    def pick(self, names: Sequence[str]) -> tuple[Source, ...]:
        """The enabled sources called so, or all of them for no name. Raises UnknownSourceError."""
        from pipeline.config.sources import pick  # see _read_sources

        return pick(self.sources, names)


def load_settings(
    config: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    home: str | Path | None = None,
    *,
    os_name: str = os.name,
    with_sources: bool = True,
) -> Settings:
    """Reads environment, `.env` files and `sources.toml`.

    config: what `--config` names. environ, cwd, home: this process's own when left out; os.environ is never changed.
    with_sources: False leaves `sources` empty and needs no `sources.toml`, for commands that only ask the index.
    Raises ConfigError.
    """
    lookup, found = locate(config, environ, cwd, home, os_name=os_name)
    if found is None and with_sources:
        raise _no_config(lookup)
    return _settings(lookup, found, with_sources=with_sources)


def locate(
    config: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    home: str | Path | None = None,
    *,
    os_name: str = os.name,
) -> tuple[Lookup, Path | None]:
    """The variables in force, and the `sources.toml` if there is one. Arguments and errors as for `load_settings`."""
    process = os.environ if environ is None else environ
    here = _current_folder() if cwd is None else cwd.absolute()
    top = absolute(str(home or home_of(process, os_name)), str(here), os_name, "home folder")
    files = _env_files(here, process)
    lookup = _lookup(process, files, top, here, os_name)
    found = find_config(config, lookup)
    if found is not None and found.parent != here:
        files = _env_files(found.parent, process) + files
        lookup = _lookup(process, files, top, here, os_name)
    return lookup, found


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise ConfigError("the current folder is gone", next_step="change to one that exists") from error


def _env_files(folder: Path, process: Mapping[str, str]) -> tuple[EnvFile, ...]:
    file = read_env_file(folder / ".env", process)
    return () if file is None else (file,)


def _lookup(process: Mapping[str, str], files: tuple[EnvFile, ...], home: str, cwd: Path, os_name: str) -> Lookup:
    environ = Environment(process, files)
    return Lookup(environ, Machine(environ, home, cwd, os_name))


def _no_config(lookup: Lookup) -> ConfigError:
    places = config_places(lookup)
    return ConfigError(
        f"there is no {places[0].name}, neither in the current folder nor in {places[1].parent}",
        where=str(places[0]),
        next_step="run `retrieval init` to make one, or name one with --config",
    )


def _settings(lookup: Lookup, config: Path | None, *, with_sources: bool) -> Settings:
    data_dir = data_folder(lookup)
    beside = config.parent if config else config_folder(lookup)
    overrides = lookup.path("RETRIEVAL_CATEGORY_OVERRIDES") or beside / OVERRIDES_NAME
    policy, warnings = "review", _warnings(lookup, config, overrides)
    sources: tuple[Source, ...] = ()
    if config is not None and with_sources:
        policy, sources, more = _read_sources(lookup, config, data_dir)
        warnings += more
    return Settings(
        data_dir=data_dir,
        config_file=config,
        taxonomy_path=_taxonomy(lookup, beside),
        overrides_path=overrides,
        uncategorized=policy,
        sources=sources,
        chroma=chroma_settings(lookup, data_dir),
        embedder=embedding_settings(lookup),
        limits=limits(lookup),
        lock_timeout=lookup.number("RETRIEVAL_LOCK_TIMEOUT"),
        iwe_command=lookup.command("RETRIEVAL_IWE_COMMAND"),
        warnings=warnings,
        env_files=tuple(file.path for file in lookup.environ.files),
        origins={name: lookup.environ.where(used) for name in BY_NAME if (used := lookup.name_in_use(name))},
    )


def _read_sources(
    lookup: Lookup, config: Path, data_dir: Path
) -> tuple[str, tuple[Source, ...], tuple[ConfigWarning, ...]]:
    # Only a run that reads sources pays for the TOML parser.
    from pipeline.config.document import read_document, read_policy
    from pipeline.config.sources import read_sources

    machine = lookup.machine
    home = lookup.path("HERMES_HOME")
    hermes_home = str(home) if home else hermes.default_home(machine.environ, machine.home, machine.os_name)
    document = read_document(config)
    sources, warnings = read_sources(document, machine, data_dir=data_dir, hermes_home=hermes_home)
    return read_policy(document), sources, warnings


def _taxonomy(lookup: Lookup, beside: Path) -> Path:
    named = lookup.path("RETRIEVAL_TAXONOMY")
    if named is None:
        own = beside / TAXONOMY_NAME
        return own if is_file(own) else bundled(TAXONOMY_NAME)
    if not is_file(named):
        raise ConfigError(
            f"there is no taxonomy file {named}",
            where=lookup.environ.where("RETRIEVAL_TAXONOMY"),
            next_step="correct the path, or unset the variable to use the bundled vocabulary",
        )
    return named


def _warnings(lookup: Lookup, config: Path | None, overrides: Path) -> tuple[ConfigWarning, ...]:
    environ = lookup.environ
    warnings = [warning for file in environ.files for warning in file.warnings]
    warnings += unknown_variables(environ)
    if lookup.name_in_use("RETRIEVAL_CATEGORY_OVERRIDES") and not is_file(overrides):
        warnings.append(
            ConfigWarning(
                f"there is no file {overrides}, so no category is assigned by hand",
                environ.where("RETRIEVAL_CATEGORY_OVERRIDES"),
                "create it, or unset the variable",
            )
        )
    return (*warnings, *without_effect(lookup), *_late_config(lookup, config))


def _late_config(lookup: Lookup, config: Path | None) -> list[ConfigWarning]:
    """RETRIEVAL_CONFIG in the `.env` file that was only found beside the configuration."""
    for file in lookup.environ.files:
        entry = file.entries.get("RETRIEVAL_CONFIG")
        if entry is not None and config is not None and config.parent == file.path.parent != lookup.machine.cwd:
            return [
                ConfigWarning(
                    "RETRIEVAL_CONFIG has no effect in the .env file beside the configuration it would name",
                    f"{file.path}:{entry.line}",
                    "set it in the environment, or use --config",
                )
            ]
    return []
