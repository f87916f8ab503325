"""A shadow of a build: the same steps on the same sources, with every write going to a folder that is thrown away.

With the real memo and manifests below it, it shows what a build would do; with none but the vectors, what a clean build would say.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipeline.engine.build import Build, Paths
from pipeline.engine.memo import STEPS, Memo, ReadMemo


class _ShadowMemo(Memo):
    """A memo in memory over a real one that is only read, for the steps named."""

    def __init__(self, base: Memo, steps: Sequence[str]) -> None:
        super().__init__(Path(":memory:"))
        self.base = base
        self.steps = steps

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        self._create(connection)
        return connection

    def get(self, step: str, keys: Sequence[str]) -> dict[str, bytes]:
        """From memory, else from the real memo."""
        found = super().get(step, keys)
        if step in self.steps and self.base.path.exists():
            found.update(self.base.get(step, [key for key in keys if key not in found]))
        return found

    def has(self, step: str, keys: Sequence[str]) -> set[str]:
        """In memory or in the real memo."""
        held = super().has(step, keys)
        if step in self.steps and self.base.path.exists():
            held |= self.base.has(step, [key for key in keys if key not in held])
        return held


class _ShadowPaths(Paths):
    """The real paths, but for the folder of manifests."""

    def __init__(self, data: Path, build: Path) -> None:
        super().__init__(data)
        self.build = build


class ShadowBuild(Build):
    """A build that leaves no trace. Its report counts what a real one would do."""

    dry = True

    def record(self, step: str, before: dict[str, str], after: dict[str, str], ran: set[str], note: str = "") -> None:
        """Keep no lineage."""

    def writer(self) -> None:
        """Nothing is written, so nobody is kept waiting."""


@contextmanager
def shadow(real: Build, *, clean: bool) -> Iterator[ShadowBuild]:
    """A shadow of `real`. clean: as if nothing but the vectors had ever been made."""
    with tempfile.TemporaryDirectory(prefix="retrieval-") as folder:
        build = ShadowBuild(real.settings, real.progress, real.only)
        build.rebuild_store = real.rebuild_store
        build.memo = _ShadowMemo(ReadMemo(real.paths.memo), ("embed",) if clean else STEPS)
        build.paths = _ShadowPaths(real.settings.data_dir, Path(folder))
        if not clean:
            _mirror(real.paths.build, Path(folder))
        try:
            yield build
        finally:
            build.memo.base.close()
            build.memo.close()


def _mirror(source: Path, target: Path) -> None:
    """Copy a tree of manifests. Copies, not links: the shadow's folder may lie on another file system."""
    for folder, _names, filenames in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in filenames:
            (place / name).write_bytes((Path(folder) / name).read_bytes())


def run_steps(build: ShadowBuild) -> None:
    """All steps up to where the real build would write outside its manifests."""
    from pipeline import tasks

    for source in build.sources:
        if not build.only or source.name in build.only:
            tasks.scan.run(build, source.name)
        tasks.categorize.run(build, source.name)
    tasks.select.run(build)
    for source in build.sources:
        tasks.descriptor.run(build, source.name)
        tasks.terms.run(build, source.name)
        tasks.embed.run(build, source.name)
        tasks.card.run(build, source.name)
    tasks.hub.run(build)
    tasks.upsert.run(build)
    for source in build.references:
        if not build.only or source.name in build.only:
            tasks.references.document.run(build, source.name)
        for step in (tasks.references.section, tasks.references.terms, tasks.references.embed):
            step.run(build, source.name)
