"""Turns the blocks of `sources.toml` into sources: paths made absolute, defaults filled in, Hermes homes unfolded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.config import hermes
from pipeline.config.checks import check
from pipeline.config.document import Block, Document, read_blocks
from pipeline.config.files import folder_fault
from pipeline.config.guess import harness_of, state_of
from pipeline.config.keys import KINDS
from pipeline.config.paths import Expander, absolute, is_foreign
from pipeline.config.suggest import did_you_mean, shown
from pipeline.config.values import ConfigWarning, Machine, Source
from pipeline.errors import ConfigError, UnknownSourceError

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Reading:
    """The configuration file being read, and what is found out on the way."""

    def __init__(self, machine: Machine, folder: str, hermes_home: str) -> None:
        self.machine = machine
        self.folder = folder
        self.hermes_home = hermes_home
        self.sources: list[Source] = []
        self.warnings: list[ConfigWarning] = []

    def path(self, text: str, where: str) -> str:
        machine = self.machine
        expanded = Expander(machine.environ, machine.home, machine.os_name, where).expand(text)
        return absolute(expanded, self.folder, machine.os_name, where)

    def warn(self, what: str, where: str, next_step: str) -> None:
        self.warnings.append(ConfigWarning(what, where, next_step))


def read_sources(
    document: Document, machine: Machine, *, data_dir: Path, hermes_home: str
) -> tuple[tuple[Source, ...], tuple[ConfigWarning, ...]]:
    """The sources in order of precedence, and what looks wrong with them but can be worked with.

    hermes_home: the Hermes home in use, which may be a profile's. Raises ConfigError for what cannot.
    """
    reading = _Reading(machine, str(document.path.parent), hermes_home)
    for block in read_blocks(document):
        if not block.enabled:
            reading.sources.append(_listed(block))
        elif block.kind not in KINDS:
            reading.warn(
                f"source {shown(block.name)} is left out: this version does not read kind {shown(block.kind)} yet",
                block.where,
                "set enabled = false until a later version does",
            )
        elif block.kind == "references":
            _references(reading, block)
        elif block.profiles:
            _unfold(reading, block)
        else:
            _single(reading, block)
    reading.warnings += check(reading.sources, data_dir)
    if not any(source.enabled for source in reading.sources):
        reading.warn(
            "no source is enabled, so there is nothing to index", str(document.path), "add a [[sources]] block"
        )
    return tuple(reading.sources), tuple(reading.warnings)


def _listed(block: Block) -> Source:
    """A disabled source: its path stays as written, because what it needs may not be set up."""
    return Source(**_common(block, block.harness, block.state or "cold"), path=Path(block.path or "."), enabled=False)


def _common(block: Block, harness: str, state: str) -> dict[str, Any]:
    return {
        "name": block.name,
        "kind": block.kind,
        "state": state,
        "harness": harness,
        "group": block.group,
        "include": block.include,
        "exclude": block.exclude,
        "declared": block.name,
        "where": block.where,
    }


def _references(reading: _Reading, block: Block) -> None:
    if not block.path:
        raise ConfigError(f"source {shown(block.name)} has no path", where=block.path_where, next_step='add path = "…"')
    _add(reading, block, Source(**_common(block, "", "cold"), path=Path(reading.path(block.path, block.path_where))))


def _single(reading: _Reading, block: Block) -> None:
    os_name = reading.machine.os_name
    if block.path:
        path = reading.path(block.path, block.path_where)
    elif block.harness == "hermes":
        path = absolute("skills", reading.hermes_home, os_name, block.where)
    else:
        raise ConfigError(
            f"source {shown(block.name)} has no path",
            where=block.path_where,
            next_step='add path = "…"; only harness = "hermes" has a default',
        )
    harness = block.harness or harness_of(
        path, home=reading.machine.home, hermes_home=reading.hermes_home, os_name=os_name
    )
    source = Source(**_common(block, harness, block.state or state_of(path, harness, os_name)), path=Path(path))
    _add(reading, block, source)


def _add(reading: _Reading, block: Block, source: Source) -> None:
    fault = folder_fault(source.path)
    if fault:
        _ghost(reading, source, fault, block)
    reading.sources.append(replace(source, available=not fault))


def _ghost(reading: _Reading, source: Source, fault: str, block: Block) -> None:
    if is_foreign(block.path, reading.machine.os_name):
        fault = "is a Windows path, which this system does not have"
    reading.warn(
        f"source {shown(source.name)} has no {source.kind}: the folder {source.path} {fault}",
        block.path_where,
        "create or mount it, correct the path, or set enabled = false",
    )


def _unfold(reading: _Reading, block: Block) -> None:
    """One source for each skill folder of a Hermes home; what does not exist is not invented."""
    if block.harness != "hermes":
        raise ConfigError(
            f'source {shown(block.name)} has profiles = true without harness = "hermes"',
            where=block.where,
            next_step='add harness = "hermes", or remove profiles',
        )
    machine = reading.machine
    home = reading.path(block.path, block.path_where) if block.path else reading.hermes_home
    default = hermes.default_home(machine.environ, machine.home, machine.os_name)
    root = Path(hermes.root_of(home, default, machine.os_name))
    folders, strange = hermes.skill_folders(root)
    for folder in folders:
        common = _common(block, "hermes", "archived" if folder.archived else block.state or "native")
        common |= {"name": block.name + folder.suffix, "group": block.group or block.name}
        reading.sources.append(Source(**common, path=folder.path))
    for folder_path in strange:
        reading.warn(
            f"a folder beside the Hermes profiles is left out: {shown(folder_path.name)} is no profile's name",
            str(folder_path),
            "rename it, or add it as a source of its own",
        )
    if not folders:
        reading.warn(
            f"source {shown(block.name)} has no skills: no Hermes skill folder exists in {root}",
            block.where,
            "set HERMES_HOME or path, or set enabled = false",
        )


def pick(sources: Sequence[Source], names: Sequence[str]) -> tuple[Source, ...]:
    """The enabled sources that `names` ask for; a block's name stands for all its sources. None asked for: all.

    Raises UnknownSourceError for a name that matches nothing or only something disabled.
    """
    wanted: list[Source] = []
    known = {name for source in sources for name in (source.name, source.declared)}
    for name in names:
        matching = [source for source in sources if name in {source.name, source.declared}]
        if not matching:
            next_step = did_you_mean(name, known, f"known are {', '.join(sorted(known)) or 'none'}")
            raise UnknownSourceError(f"there is no source {shown(name)}", next_step=next_step)
        if not any(source.enabled for source in matching):
            raise UnknownSourceError(
                f"source {shown(name)} is disabled", where=matching[0].where, next_step="set enabled = true"
            )
        wanted += [source for source in matching if source.enabled]
    chosen = {source.name for source in wanted}
    return tuple(source for source in sources if source.enabled and (not names or source.name in chosen))
