"""Other processes for the many items of a first build. A build with little to do starts none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

# Starting a process and importing a step there takes a third of a second, as long as some hundred items.
WORTH_STARTING = 400
WORTH_SHARING = 64

T = TypeVar("T")


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """Runs a function over items, here or in one process a core. Results come in the items' order either way."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._cores = cores()

    def start(
        self, function: Callable[..., list[bytes]], items: Sequence[T], *common: object
    ) -> Callable[[], list[bytes]]:
        """Begin function(part of the items, *common); calling what comes back waits and gives the parts' lists joined.

        The function must be a module's own, and pure. What is not worth other processes runs here, when it is waited for.
        """
        enough = len(items) >= (WORTH_STARTING if self._pool is None else WORTH_SHARING)
        if self._cores < 2 or not enough:
            return lambda: function(items, *common)
        size = max(WORTH_SHARING // 4, len(items) // (self._cores * 4))
        parts = [items[start : start + size] for start in range(0, len(items), size)]
        jobs = [self._started().submit(function, part, *common) for part in parts]
        return lambda: [value for job in jobs for value in job.result()]

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            # Not forked: this process may have threads by now, and open databases.
            self._pool = ProcessPoolExecutor(self._cores, mp_context=multiprocessing.get_context("spawn"))
        return self._pool
