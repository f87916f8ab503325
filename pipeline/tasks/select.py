"""Select over all sources: a manifest per source says what became of each of its skills."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.engine import files, manifest
from pipeline.model import Categorized, Found, Link, Selected
from pipeline.steps import select
from pipeline.tasks import entries, reselect, texts, ties

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.engine.build import Build
    from pipeline.engine.report import StepCount


def origins(build: Build) -> dict[str, select.Origin]:
    """What the step needs to know of each source."""
    return {
        source.name: select.Origin(source.name, source.state, source.harness, source.group, order)
        for order, source in enumerate(build.sources)
    }


def settings(build: Build) -> list[str]:
    """Digests of code, policy and of what the configuration says of the sources."""
    return [texts.code_digest("select"), build.settings.uncategorized, repr(sorted(origins(build).items()))]


def run(build: Build) -> None:
    """Decide over the found skills and write one manifest per source, empty ones included.

    After a small change only the skills that it may reach are decided; the manifests are the same, byte for byte.
    """
    with build.report.timing("select") as count:
        names = [source.name for source in build.sources]
        token = files.key(*settings(build))
        held = reselect.remembered(build, names, token) if manifest.raw(links_path(build)) else None
        change = reselect.run(build, held, token, partial(_decided, build), count) if held is not None else None
        if change is None:
            _whole(build, names, token, count)
        else:
            _store_links(build, *change)
            _record(build, *change)
        _forget_gone_sources(build, {*names, *(source.name for source in build.references)})


def _decided(build: Build, found: Iterable[Found], categorized: Mapping[str, Categorized]) -> list[Selected]:
    decided = select.decide(found, categorized, origins(build), build.settings.uncategorized)
    return [
        msgspec.structs.replace(row, mark=entries.mark(row.record)) if row.record is not None else row
        for row in decided
    ]


def _whole(build: Build, names: Sequence[str], token: str, count: StepCount) -> None:
    """Decide over all skills."""
    found = [row for name in names for row in build.rows("scan", name, Found)]
    categorized = {row.id: row for name in names for row in build.rows("categorize", name, Categorized)}
    rows = _decided(build, found, categorized)
    source_of = {item.id: item.source for item in found}
    by_source: dict[str, list[Selected]] = {name: [] for name in names}
    for row in rows:
        by_source[source_of[row.id]].append(row)
    count.executed += len(rows)
    was: dict[str, Selected] = {}
    for name, mine in by_source.items():
        path = build.paths.manifest("select", name)
        old = manifest.raw(path)
        if manifest.store(path, mine):
            was |= {row.id: row for row in manifest.decode(old, Selected)}
        else:
            was |= {row.id: row for row in mine}
    links = [_link(row) for row in rows if row.record is not None]
    manifest.store(links_path(build), links)
    _record(build, was, {row.id: row for row in rows})
    for name in names:
        tied = ties.make(build, name, token, None)
        if tied is not None:
            ties.store(build, name, tied)


def _store_links(build: Build, was: Mapping[str, Selected], now: Mapping[str, Selected]) -> None:
    """What the catalog's hub pages say of each indexed skill: an edit that changes none of it does not reach them."""
    old, new = ({key: _link(row) for key, row in side.items() if row.record} for side in (was, now))
    if old == new:
        return
    path = links_path(build)
    links = {row.id: row for row in manifest.load(path, Link) if row.id not in old}
    manifest.store(path, list((links | new).values()))


def _link(row: Selected) -> Link:
    item = row.record
    if item is None:
        raise ValueError(f"{row.id} is not indexed")
    return Link(id=item.id, name=item.name, source=item.source, categories=item.categories)


def _record(build: Build, was: Mapping[str, Selected], now: Mapping[str, Selected]) -> None:
    changed = {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)}
    old, new = ({key: _digest(side[key]) for key in changed & side.keys()} for side in (was, now))
    build.record("select", old, new, set())


def links_path(build: Build) -> Path:
    """The manifest of links."""
    return build.paths.build / "links.jsonl"


def _digest(row: Selected) -> str:
    label = row.status if not row.reason else f"{row.status}: {row.reason}"
    return f"{files.digest(manifest.encode(row))[:12]} {label}"


def _forget_gone_sources(build: Build, names: set[str]) -> None:
    """Remove what the steps kept for sources that are no longer configured; later steps see them leave."""
    for folder in _PER_SOURCE:
        for path in (build.paths.build / folder).glob("*"):
            if _source_of(path) not in names and not path.name.startswith(files.PART):
                path.unlink()


def _source_of(path: Path) -> str:
    """The source that a file of a step is about: its name without the endings."""
    return path.name.removesuffix(".sum").rpartition(".")[0]


_PER_SOURCE = ("ties", "scan", "scan-cache", "problems", "categorize", "select", "descriptor", "terms", "embed")
