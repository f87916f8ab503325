"""Embedded mode: Chroma's files in a folder of this machine, written by one process at a time."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from pipeline.chroma.faults import REBUILD, StoreDamagedError, StoreError

if TYPE_CHECKING:
    from pipeline.chroma.config import ChromaConfig
    from pipeline.chroma.engine import Engine

DATABASE = "chroma.sqlite3"
SOUND, DAMAGED, UNABLE = 0, 10, 11  # what the inspecting process says by its exit code
PATIENCE = 900  # seconds for it; 100,000 rows take it about fifteen
_SEGMENT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class EmbeddedBackend:
    """Opens the folder, sets it aside when it is broken, and sweeps what Chroma leaves lying there."""

    local = True

    def __init__(self, config: ChromaConfig, *, prefer: str = "bindings") -> None:
        self.path = Path(config.path)
        self.where = str(self.path)
        self.notices: list[str] = []
        self._prefer = prefer

    def open(self) -> Engine:
        """The engine: Chroma's bindings where they are the tested ones, else its public client."""
        self.path.mkdir(parents=True, exist_ok=True)
        if self._prefer == "client":
            return self._client()
        from pipeline.chroma import bindings

        reason = bindings.unfamiliar()
        if not reason:
            return bindings.BindingsEngine(self.path)
        self.notices.append(f"{reason}: its public client is used, which starts more slowly")
        return self._client()

    def set_aside(self) -> str:
        """Move the folder out of the way, replacing what was set aside before; returns where it went."""
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            if aside.exists():
                shutil.rmtree(aside)
            self.path.rename(aside)
        except OSError as error:
            raise StoreError(
                f"the damaged store cannot be moved aside: {error.strerror}",
                where=self.where,
                next_step=f"end what uses {self.path}, move it away and run `retrieval build` again",
            ) from error
        return str(aside)

    def sweep(self) -> None:
        """Remove the index folders of collections that are gone, which Chroma itself never does."""
        folders = [item for item in self.path.iterdir() if item.is_dir() and _SEGMENT.fullmatch(item.name)]
        used = self._segments() if folders else None
        if used is None:
            return
        for folder in folders:
            if folder.name not in used:
                shutil.rmtree(folder)

    def probe(self, namespace: str, name: str) -> None:
        """Inspect the closed store in another process. Raises StoreDamagedError, also when that process crashes."""
        import os
        import subprocess
        import sys

        root = Path(__file__).parents[2]
        try:
            done = subprocess.run(  # what it runs is this package itself
                [sys.executable, "-m", "pipeline.chroma.probe", str(self.path), namespace, name],
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")])),
                },
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired as error:
            what = f"reading it did not end within {PATIENCE} s"
            raise StoreDamagedError(what, where=self.where, next_step=REBUILD) from error
        if done.returncode in (SOUND, UNABLE):
            return  # whatever else is wrong with the store shows when it is opened here
        crashed = f"reading it ended a process with code {done.returncode}"
        raise StoreDamagedError(
            done.stdout.strip() if done.returncode == DAMAGED else crashed, where=self.where, next_step=REBUILD
        )

    def _segments(self) -> set[str] | None:
        """IDs of the segments that Chroma knows; None when its database has another shape than the tested version's."""
        import sqlite3

        try:
            with closing(sqlite3.connect(f"{(self.path / DATABASE).resolve().as_uri()}?mode=ro", uri=True)) as database:
                return {row[0] for row in database.execute("SELECT id FROM segments")}
        except sqlite3.Error:
            return None

    def _client(self) -> Engine:
        from pipeline.chroma import client

        return client.persistent(self.path)


def fingerprint(config: ChromaConfig, collection: str) -> str | None:
    """A digest of the folder's listing: unchanged means that nobody wrote to the store. None: there is no store.

    Covers path, size, modification time and inode of each file; takes about a millisecond and opens nothing of Chroma.
    """
    root = Path(config.path)
    lines = [f"{collection}\n"]
    try:
        for entry in sorted(root.rglob("*")):
            stat = entry.stat()
            if not entry.is_dir():
                lines.append(f"{entry.relative_to(root)}\0{stat.st_size}\0{stat.st_mtime_ns}\0{stat.st_ino}\n")
    except FileNotFoundError:
        return None  # the folder, or a file of a running writer, is gone: there is nothing to trust
    if len(lines) == 1:
        return None
    return blake3("".join(lines).encode("utf-8", "surrogatepass")).hexdigest(length=16)
