"""Carries the progress of a call from its thread to the client, in order and never backwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

Report = Callable[[float, float | None, str | None], Awaitable[None]]


class Reporter:
    """What `tell` is given in any thread, `report` is given in the event loop until the block ends."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._queue: asyncio.Queue[tuple[float, str] | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._forward())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if self._task is None:
            return
        if kind is None:
            self._queue.put_nowait(None)
            await self._task
        else:
            self._task.cancel()

    def tell(self, fraction: float, text: str) -> None:
        """Report that a fraction, 0 to 1, is done. Callable from any thread, also when nobody listens any more."""
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, (fraction, text))
        except RuntimeError:  # the loop is closed: the client has gone
            return

    async def _forward(self) -> None:
        last = -1.0
        while (item := await self._queue.get()) is not None:
            fraction, text = item
            if fraction > last:  # the protocol wants it to grow
                last = fraction
                await self._report(fraction, 1.0, text)
