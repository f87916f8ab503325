"""Select over all sources: a manifest per source says what became of each of its skills."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.engine import files, manifest
from pipeline.model import Categorized, Found, Link, Selected
from pipeline.steps import select
from pipeline.tasks import entries, texts

if TYPE_CHECKING:
    from pipeline.engine.build import Build


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
    """Decide over all found skills and write one manifest per source, empty ones included."""
    with build.report.timing("select") as count:
        names = [source.name for source in build.sources]
        found = [row for name in names for row in build.rows("scan", name, Found)]
        categorized = {row.id: row for name in names for row in build.rows("categorize", name, Categorized)}
        decided = select.decide(found, categorized, origins(build), build.settings.uncategorized)
        rows = [
            msgspec.structs.replace(row, mark=entries.mark(row.record)) if row.record is not None else row
            for row in decided
        ]
        source_of = {item.id: item.source for item in found}
        by_source: dict[str, list[Selected]] = {name: [] for name in names}
        for row in rows:
            by_source[source_of[row.id]].append(row)
        count.executed += len(rows)
        for name, mine in by_source.items():
            _store(build, name, mine)
        _store_links(build, rows)
        _forget_gone_sources(build, set(names))


def _store(build: Build, source: str, rows: list[Selected]) -> None:
    path = build.paths.manifest("select", source)
    was = manifest.raw(path)
    if not manifest.store(path, rows):
        return
    before = {row.id: row for row in manifest.decode(was, Selected)}
    after = {row.id: row for row in rows}
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    old, new = ({key: _digest(side[key]) for key in changed & side.keys()} for side in (before, after))
    build.record("select", old, new, set())


def _store_links(build: Build, rows: list[Selected]) -> None:
    """What the catalog's hub pages say of each indexed skill: an edit that changes none of it does not reach them."""
    records = [row.record for row in rows if row.record is not None]
    links = [Link(id=item.id, name=item.name, source=item.source, categories=item.categories) for item in records]
    manifest.store(links_path(build), links)


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


_PER_SOURCE = ("scan", "scan-cache", "problems", "categorize", "select", "descriptor", "terms", "embed")
