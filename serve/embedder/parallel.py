"""Runs one text at a time on several threads and gives the results in order, a bounded number ahead.

One text a run, never a padded batch, makes a vector a function of its text alone; the threads bring the speed.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

_MOST_WORKERS = 8  # each holds the activations of one text; more would only add memory


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(
    texts: Sequence[str], embed: Callable[[str], Vector], *, batch: int
) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
    """Positions and vectors of `texts`, in their order and in halves of `batch`.

    While the caller saves one half the next is computed, so at most `batch` texts are done or under way beyond what
    was asked for. embed: from a text to its (dimension,) vector, called from several threads.
    """
    step = max(1, batch // 2)
    workers = min(available_cores(), _MOST_WORKERS, step)
    pending: deque[tuple[list[int], list[Future[Vector]]]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="embed")
    try:
        for start in range(0, len(texts), step):
            indices = list(range(start, min(start + step, len(texts))))
            pending.append((indices, [pool.submit(embed, texts[index]) for index in indices]))
            if len(pending) == 2 or batch == 1:
                yield _collect(pending.popleft())
        while pending:
            yield _collect(pending.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _collect(entry: tuple[list[int], list[Future[Vector]]]) -> tuple[list[int], NDArray[np.float32]]:
    indices, futures = entry
    return indices, np.stack([future.result() for future in futures])
