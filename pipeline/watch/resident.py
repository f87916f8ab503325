"""Builds again and again in one process, and keeps what the next build can use as it is."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.engine import files, graph
from pipeline.engine.build import Build
from pipeline.errors import LockedError
from serve.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.settings import Settings
    from serve.embedder import Embedder, EmbedderConfig

NOTHING = frozenset({""})  # the name of no source: nothing is scanned
_PATIENCE = 1.0  # seconds of waiting for another run before a stop is looked for


class StoppedError(Exception):
    """A stop was asked for while another run was waited for."""


class Resident:
    """account: what is said of a finished build. waiting: called with the holder while another run writes; True to go on."""

    def __init__(
        self, account: Callable[[Build], dict[str, Any]], waiting: Callable[[dict[str, object]], bool]
    ) -> None:
        self._account = account
        self._waiting = waiting
        self._digests = Digests()
        self._embedder: tuple[EmbedderConfig, Embedder] | None = None
        self._used = False
        self._frozen = False

    def build(self, settings: Settings, only: frozenset[str]) -> dict[str, Any]:
        """Bring the index up to date, scanning the sources named, or all for none. Returns the account, which `status` finds too.

        Raises OperatorError, and StoppedError.
        """
        build = Build(settings, only=only)
        build.digests = self._digests
        self._lend(build)
        try:
            self._acquire(build)
            try:
                graph.run(build)
                account = self._account(build)
            except OperatorError as error:
                failed = {"run": build.report.run, "started": build.report.started, "error": error.as_dict()}
                files.write(build.paths.last_run, msgspec.json.encode(failed))
                raise
            files.write(build.paths.last_run, msgspec.json.encode(account))
            return account
        finally:
            self._take_back(build)
            build.close()
            self._digests.forget_unused()
            vars(build).clear()  # its rows go at once, and need not be looked through for cycles
            self._tidy()

    def rest(self) -> None:
        """Nothing has happened for long: give back the model if no build has used it since the last time."""
        if not self._used:
            self.close()
        self._used = False

    def close(self) -> None:
        """Give back the model."""
        if self._embedder is not None:
            self._embedder[1].close()
            self._embedder = None

    def _tidy(self) -> None:
        """Collect what the task runner leaves behind in cycles; what the program itself consists of is not looked through again."""
        gc.collect()
        if not self._frozen:
            gc.freeze()
            self._frozen = True

    def _acquire(self, build: Build) -> None:
        while True:
            try:
                build.lock.acquire(_PATIENCE)
            except LockedError as error:
                if not self._waiting(error.holder):
                    raise StoppedError from error
            else:
                return

    def _lend(self, build: Build) -> None:
        """Give a build the loaded model, if it is the one that it would load."""
        if self._embedder is None:
            return
        config, embedder = self._embedder
        if config == build.embedder_config:
            build.__dict__["embedder"] = embedder
        else:
            self.close()

    def _take_back(self, build: Build) -> None:
        """Keep the model that a build has loaded. One behind an address is not kept: its connections do not last."""
        embedder = build.__dict__.get("embedder")
        if embedder is None or build.embedder_config.kind == "endpoint":
            return
        self._used = self._used or self._embedder is None or build.report.step("embed").executed > 0
        self._embedder = (build.embedder_config, embedder)
        del build.__dict__["embedder"]


class Digests(files.Digests):
    """Digests that outlive a build: a file that was replaced has another inode or time, and is hashed again."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, tuple[tuple[int, int, int, int], str]] = {}
        self._asked: set[str] = set()

    def of(self, path: Path | str) -> str:
        """The digest of a file's bytes. Raises OSError."""
        name = str(path)
        stat = os.stat(name)
        mark = (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        self._asked.add(name)
        known = self._held.get(name)
        if known is None or known[0] != mark:
            known = self._held[name] = (mark, files.digest_file(name))
        return known[1]

    def forget_unused(self) -> None:
        """Forget files that nobody asked for since the last time."""
        self._held = {name: held for name, held in self._held.items() if name in self._asked}
        self._asked = set()
