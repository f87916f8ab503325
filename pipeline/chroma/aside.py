"""Writes a change to an embedded store in another process: `python -m pipeline.chroma.aside`, the order on stdin.

Chroma's bindings hold Python's global lock for as long as they load their index, a third of a second at ten thousand rows, in which a
build can do something else. And an index that was damaged may end a process: here it is not the build's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from pipeline.chroma.config import ChromaConfig


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to do: the store, what it should hold and is known to hold (ID to row key), and the rows that have to be written.

    vectors: float32, little-endian, row after row.
    """

    path: str
    namespace: str
    embedder: str
    wanted: dict[str, str]
    held: dict[str, str]
    stamp: str
    ids: list[str]
    vectors: bytes
    metadatas: list[dict[str, str | list[str]]]
    documents: list[str]


class Done(msgspec.Struct, frozen=True):
    """What was done: IDs written and removed, collections of earlier embedders removed, and what an operator wants to know."""

    put: tuple[str, ...]
    drop: tuple[str, ...]
    retired: tuple[str, ...]
    notices: list[str]


class Aside:
    """An order being carried out. keep_open: file descriptors that the other process holds too, so that a lock outlives this one."""

    def __init__(self, order: Order, keep_open: Sequence[int] = ()) -> None:
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        with tempfile.TemporaryFile() as file:
            file.write(msgspec.msgpack.encode(order))
            file.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pipeline.chroma.aside"],
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=tuple(keep_open),
            )

    def result(self) -> Done | None:
        """Wait for the end. None when it was not carried out, for whatever reason: do it here, and meet the reason."""
        out, _none = self._process.communicate()
        if self._process.returncode != 0:
            return None
        try:
            return msgspec.msgpack.decode(out, type=Done)
        except msgspec.MsgspecError:
            return None


def carry_out(order: Order) -> Done:
    """Bring the store to what is wanted. Raises when other rows than the order's would have to be written."""
    import numpy as np

    from pipeline.chroma import Rows, open_store, reconcile

    count = len(order.ids)
    vectors = np.frombuffer(order.vectors, dtype="<f4").reshape(count, -1) if count else np.empty((0, 0), dtype="<f4")
    ready = Rows(ids=order.ids, vectors=vectors, metadatas=order.metadatas, documents=order.documents)

    places = {skill: place for place, skill in enumerate(order.ids)}

    def load(ids: Sequence[str]) -> Rows:
        start = places.get(ids[0], 0)
        part = ready.slice(start, start + len(ids))
        if list(part.ids) != list(ids):
            raise LookupError("the store does not hold what it was thought to hold")
        return part

    config = ChromaConfig(mode="embedded", namespace=order.namespace, path=order.path)
    held: Mapping[str, str] = order.held
    with open_store(config, order.embedder) as store:
        outcome = reconcile(store, order.wanted, load, order.stamp, held=held)
        return Done(outcome.plan.put, outcome.plan.drop, outcome.retired, list(store.notices))


if __name__ == "__main__":
    done = carry_out(msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Order))
    sys.stdout.buffer.write(msgspec.msgpack.encode(done))
