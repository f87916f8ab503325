"""One run of the build: the settings, where everything lies, and what is opened at most once and only when needed."""

from __future__ import annotations

import functools
import os
import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from pipeline.engine import files, manifest, wiring
from pipeline.engine.items import Resolver
from pipeline.engine.lineage import Change, Lineage
from pipeline.engine.lock import WriterLock
from pipeline.engine.memo import Memo
from pipeline.engine.report import Progress, Report, Silent
from pipeline.engine.workers import Workers
from pipeline.errors import BuildError
from serve.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipeline.chroma.config import ChromaConfig
    from pipeline.engine.vocabulary import Vocabulary
    from pipeline.settings import Settings, Source
    from pipeline.tasks.entries import Entry
    from pipeline.taxonomy import Overrides, Taxonomy
    from serve.contract import EmbedderIdentity, StoreInfo
    from serve.embedder import Embedder, EmbedderConfig


T = TypeVar("T")
MARKER = ".retrieval"
# What may come before the marker: the lock, a prepared model, the name by which a server tells data directories apart.
EARLY = frozenset({"writer.lock", "writer.lock.holder", "models", "installation"})
_MARKER_TEXT = b"Everything in this folder is made by Retrieval and may be deleted; `retrieval build` makes it again.\n"


class Paths:
    """Where a data directory keeps what. Everything below it is derived from the sources and may be deleted."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.memo = data / "memo.sqlite3"
        self.lineage = data / "lineage.sqlite3"
        self.lock = data / "writer.lock"
        self.build = data / "build"
        self.catalog = data / "catalog"
        self.store = data / "chroma"
        self.snapshots = data / "snapshots"
        self.last_run = data / "last-run.json"
        self.marker = data / MARKER

    def claim(self) -> None:
        """Make the data directory ours before anything is written or removed there. Raises BuildError for somebody else's.

        Builds remove what they do not know from the folders they own, so that these must not be anybody's by chance.
        """
        if self.marker.is_file():
            return
        foreign = sorted({entry.name for entry in os.scandir(self.data)} - EARLY) if self.data.is_dir() else []
        if foreign:
            raise BuildError(
                f"the data directory holds things that Retrieval did not put there, such as {foreign[0]!r}",
                where=str(self.data),
                next_step="set RETRIEVAL_HOME to a folder that is empty or does not exist",
            )
        files.write(self.marker, _MARKER_TEXT)

    def refuse_links(self) -> None:
        """Raise BuildError for a catalog that is a link: what a build removes there may be somebody's elsewhere."""
        if self.catalog.is_symlink():
            raise BuildError(
                "the catalog is a link, and a build removes what it does not know from the catalog",
                where=str(self.catalog),
                next_step="remove the link, or move the whole data directory with RETRIEVAL_HOME",
            )

    def manifest(self, step: str, source: str) -> Path:
        """The manifest of a step for a source."""
        return self.build / step / f"{source}.jsonl"

    def problems(self, source: str) -> Path:
        """What `scan` could not index in a source."""
        return self.build / "problems" / f"{source}.jsonl"

    def scan_cache(self, source: str) -> Path:
        """The stat cache of a source's last walk."""
        return self.build / "scan-cache" / f"{source}.bin"


class Build:
    """Everything a step's task works with. One run at a time; `only` limits scanning to some sources by name.

    rebuild_store: the vector store is begun anew, from kept vectors. dry: nothing outside `paths.build` is written and
    nothing is embedded (see `pipeline.engine.shadow`).
    """

    dry = False
    rebuild_store = False

    def __init__(
        self, settings: Settings, progress: Progress | None = None, only: frozenset[str] = frozenset()
    ) -> None:
        self.settings = settings
        self.paths = Paths(settings.data_dir)
        self.progress = progress or Silent()
        self.only = only
        self.memo = Memo(self.paths.memo)
        self.lineage = Lineage(self.paths.lineage)
        self.lock = WriterLock(self.paths.lock)
        self.report = Report(run=f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(2)}")
        self.digests = files.Digests()
        self.manifests = manifest.Loaded()
        self.workers = Workers()
        self.errors: list[OperatorError] = []
        self._pending: list[Callable[[], None]] = []

    @functools.cached_property
    def sources(self) -> tuple[Source, ...]:
        """The enabled sources of kind skills, in the order of the configuration."""
        return tuple(source for source in self.settings.sources if source.enabled and source.kind == "skills")

    def source(self, name: str) -> Source:
        """An enabled source of skills by its name."""
        return next(source for source in self.sources if source.name == name)

    @functools.cached_property
    def references(self) -> tuple[Source, ...]:
        """The enabled sources of kind references, in the order of the configuration."""
        return tuple(source for source in self.settings.sources if source.enabled and source.kind == "references")

    def reference(self, name: str) -> Source:
        """An enabled source of references by its name."""
        return next(source for source in self.references if source.name == name)

    @functools.cached_property
    def taxonomy(self) -> Taxonomy:
        """The category vocabulary."""
        from pipeline.taxonomy import known_taxonomy

        path = self.settings.taxonomy_path
        return known_taxonomy(path.read_text(encoding="utf-8"), str(path))

    @functools.cached_property
    def overrides(self) -> Overrides:
        """The category assignments a person made by hand; none when the file does not exist."""
        from pipeline.taxonomy import load_overrides

        path = self.settings.overrides_path
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        return load_overrides(text, str(path), self.taxonomy)

    @functools.cached_property
    def vocabulary(self) -> Vocabulary:
        """Digests of the vocabulary and the overrides."""
        from pipeline.engine import vocabulary

        return vocabulary.digests(self)

    @functools.cached_property
    def embedder_config(self) -> EmbedderConfig:
        """How texts are embedded, from the settings."""
        return wiring.embedder_config(self.settings)

    @functools.cached_property
    def chroma(self) -> ChromaConfig:
        """Where the vector store is, from the settings."""
        return wiring.chroma_config(self.settings)

    @functools.cached_property
    def store_info(self) -> StoreInfo:
        """Where the vector store is, as the snapshot tells readers."""
        from pipeline.tasks import embed

        return wiring.store_info(self.chroma, embed.identity_key(self))

    @functools.cached_property
    def identity(self) -> EmbedderIdentity:
        """Who embeds, as far as it is known without loading a model or asking an endpoint."""
        import msgspec

        from pipeline.steps import RECIPE
        from serve.embedder import identity

        return msgspec.structs.replace(identity(self.embedder_config), recipe=RECIPE)

    @functools.cached_property
    def embedder(self) -> Embedder:
        """The opened embedder: loads the model, or asks the endpoint for its dimension."""
        from serve.embedder import open_embedder

        return open_embedder(self.embedder_config)

    def rows(self, step: str, source: str, row_type: type[T]) -> list[T]:
        """The manifest rows of a step, decoded once per run. Treat them as read-only. Raises OperatorError."""
        path = self.paths.manifest(step, source)
        return self.manifests.load(path, row_type)

    @functools.cached_property
    def entries(self) -> list[Entry]:
        """All indexed skills with their parts, in snapshot order. Only for tasks that come after `embed`."""
        from pipeline.tasks import entries

        return entries.gather(self)

    @contextmanager
    def resolving(self, step: str) -> Iterator[Resolver]:
        """Item memoisation for one task of a step, its time added to the step."""
        with self.report.timing(step) as count:
            yield Resolver(self.memo, step, count, self.progress)

    def record(self, step: str, before: dict[str, str], after: dict[str, str], ran: set[str], note: str = "") -> None:
        """Keep lineage: rows (as digests by ID) that a step left different, and items that it computed."""
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} | ran
        now = time.time()
        self.lineage.record(
            Change(key, step, self.report.run, now, key in ran, before.get(key, ""), after.get(key, ""), note)
            for key in sorted(changed)
        )

    def later(self, finish: Callable[[], None]) -> None:
        """Have something finished at the end of the run that goes on beside it from now."""
        self._pending.append(finish)

    def settle(self) -> None:
        """Finish what was put off; an error with a remedy is kept like that of a task."""
        while self._pending:
            try:
                self._pending.pop()()
            except OperatorError as error:
                self.errors.append(error)

    def writer(self) -> None:
        """Hold the writer lock from here to the end of the process or `close`."""
        self.paths.claim()
        self.lock.acquire(self.settings.lock_timeout)

    def close(self) -> None:
        """Close databases and give the lock back."""
        self.progress.close()
        if "embedder" in self.__dict__:  # opened by whoever first asked for it
            self.embedder.close()
        self.workers.close()
        self.memo.close()
        self.lineage.close()
        self.lock.release()
