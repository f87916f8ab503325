"""What the two tools do, loaded when it is first needed: nothing here is heavy to import, and a server shows its tools at once."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from serve.errors import OperatorError
from serve.settings import ServeSettings

if TYPE_CHECKING:
    from serve.references.answer import References
    from serve.retrieve import Retriever
    from serve.search import Searcher

_ARENA_MAX = -8  # of malloc.h

Progress = Callable[[float, str], None]
_log = logging.getLogger(__name__)


class Backend:
    """Callable from many threads at once. `close` ends whatever it keeps running; calls that come later are refused."""

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self._opening = threading.Lock()
        self._retriever: Retriever | None = None
        self._references: References | None = None
        self._warming: threading.Thread | None = None
        self._calls = threading.Condition()
        self._running = 0
        self._closed = False

    def skill(self, query: str, cancelled: threading.Event, progress: Progress) -> dict[str, Any]:
        """The answer of retrieve_skill. Raises OperatorError."""
        with self._call():
            retriever = self._open_retriever()
            retriever.searcher.require_embedder()
            return retriever.skill(query, cancelled=cancelled, progress=progress)

    def reference(self, query: str, limit: int, max_chars: int) -> dict[str, Any]:
        """The answer of retrieve_reference. Raises OperatorError."""
        with self._call():
            references = self._open_references(self._open_retriever().searcher)
            return references.answer(query, limit, max_chars)

    def warm(self) -> None:
        """Load index, model and scout in a thread of its own. Called once or many times."""
        with self._opening:
            if self._warming is None and not self._closed:
                self._warming = threading.Thread(target=self._warm, name="warm", daemon=True)
                self._warming.start()

    def close(self, patience: float = 1.0) -> None:
        """Wait up to `patience` seconds for calls that were told to end, then end what is kept running."""
        until = time.monotonic() + patience
        with self._calls:
            self._closed = True
            self._calls.wait_for(lambda: not self._running, timeout=patience)
        if self._warming is not None:
            self._warming.join(max(0.0, until - time.monotonic()))
        if self._retriever is not None:
            self._retriever.close()

    def _warm(self) -> None:
        try:
            retriever = self._open_retriever()
            retriever.searcher.warm()
            if not self._closed:
                retriever.warm()
        except OperatorError as error:
            _log.info("nothing could be prepared: %s", error.what)  # each answer says so, too
        except Exception:  # noqa: BLE001 - the next call meets it again and says so
            _log.exception("preparing failed")

    @contextmanager
    def _call(self) -> Iterator[None]:
        with self._calls:
            if self._closed:
                raise OperatorError("the server is ending", next_step="start it again")
            self._running += 1
        try:
            yield
        finally:
            with self._calls:
                self._running -= 1
                self._calls.notify_all()

    def _open_retriever(self) -> Retriever:
        with self._opening:
            if self._retriever is None:
                be_modest()
                from serve.retrieve import Retriever
                from serve.search import Searcher

                chosen = self.settings
                searcher = Searcher(chosen.data_dir, chosen.embedder, chosen.chroma_token, wait=False)
                self._retriever = Retriever(chosen, searcher)
            return self._retriever

    def _open_references(self, searcher: Searcher) -> References:
        """The references, with the searcher's model and snapshot: a process holds each but once."""
        searcher.require_embedder()
        with self._opening:
            if self._references is None:
                from serve.references.answer import References

                self._references = References(self.settings, searcher.embedder, searcher.live)
            return self._references


def be_modest() -> None:
    """Fit a process that runs beside others all day. Said before numpy is loaded.

    One BLAS thread: two cost more than they gain at these sizes when another core is busy. Two areas of memory that threads
    share, where glibc would give nearly each its own and never get it back: a tenth of the whole.
    """
    if sys.platform == "linux":
        import ctypes  # with what is heavy, and not with the tools

        limit = getattr(ctypes.CDLL(None), "mallopt", None)  # other libraries have none and need none
        if limit is not None:
            limit(_ARENA_MAX, 2)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
