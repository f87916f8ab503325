"""The selector `omp`: a real OMP process, stripped of everything but a model and two reading tools, makes the choice.

Every choice has a process of its own, which is ended after it. One more may stand by, started and checked beforehand.
"""

from __future__ import annotations

import atexit
import contextlib
import time
from collections.abc import Iterator
from threading import Event, Lock, Semaphore, Thread, current_thread

import msgspec

from serve.selection import Candidate, Choice, Shelf
from serve.selection.limits import POLL, ChoiceError, Limits
from serve.selection.omp_frames import Frame
from serve.selection.omp_process import GoneError, OmpProcess
from serve.selection.scout import Scout
from serve.selection.standby import Standby
from serve.selection.untrusted import one_line
from serve.settings import ScoutSettings

AT_ONCE = 3  # processes that choose at the same time; each takes some 250 MB


class OmpSelector:
    """Chooses by OMP. Belongs to one harness; its processes are never lent to another one."""

    name = "omp"

    def __init__(self, settings: ScoutSettings) -> None:
        self._settings = settings
        self._closed = Event()
        self._slots = Semaphore(AT_ONCE)
        self._lock = Lock()
        self._endings: set[Thread] = set()
        self._standby = Standby(settings, self._closed, self._end) if settings.standby else None
        atexit.register(self.close)

    def warm(self) -> None:
        """Let a process stand by, if the settings ask for one. Returns at once."""
        if self._standby is not None:
            self._standby.refill()

    def choose(
        self, query: str, candidates: list[Candidate], shelf: Shelf, *, deadline: float, cancelled: Event
    ) -> Choice:
        """The choice for a query. Whatever goes wrong is a choice of nothing, with the reason."""
        begun = time.monotonic()
        limits = Limits(deadline, (cancelled, "the request was cancelled"), (self._closed, "the selector was closed"))
        scout = Scout(query, candidates, shelf, limits)
        try:
            with self._slot(limits):
                choice = scout.decide(self._text(scout, limits), self.name)
        except ChoiceError as error:
            choice = scout.failed(error, self.name)
        self.warm()
        return msgspec.structs.replace(choice, milliseconds=round((time.monotonic() - begun) * 1000, 2))

    def close(self) -> None:
        """End every process, also those that are choosing, and wait for their end. May be called twice."""
        self._closed.set()
        atexit.unregister(self.close)
        if self._standby is not None:
            self._standby.close()
        for _slot in range(AT_ONCE):  # whoever is choosing notices within a moment
            self._slots.acquire()
        for _slot in range(AT_ONCE):
            self._slots.release()
        with self._lock:
            endings = list(self._endings)
        for thread in endings:
            thread.join()

    def _text(self, scout: Scout, limits: Limits) -> str:
        """The model's last message, from the process that stood by, or from a new one."""
        process = self._standby.take(limits) if self._standby is not None else None
        if process is not None:
            try:
                return self._used(process, scout, limits)
            except GoneError:
                # It may have died while it stood by: no reason to fail, unless the model was at work already.
                if scout.calls:
                    raise
        process = OmpProcess(self._settings)
        try:
            process.prepare(limits)
        except BaseException:
            self._end(process)
            raise
        return self._used(process, scout, limits)

    def _used(self, process: OmpProcess, scout: Scout, limits: Limits) -> str:
        try:
            return _dialogue(process, scout, limits)
        finally:
            self._end(process)

    @contextlib.contextmanager
    def _slot(self, limits: Limits) -> Iterator[None]:
        limits.check()
        while not self._slots.acquire(timeout=POLL):
            limits.check()
        try:
            yield
        finally:
            self._slots.release()

    def _end(self, process: OmpProcess) -> None:
        """End a process in the background: the answer need not wait for that, `close` does."""

        def end() -> None:
            process.end()
            with self._lock:
                self._endings.discard(current_thread())

        thread = Thread(target=end, name="retrieval-scout-end", daemon=True)
        with self._lock:
            self._endings.add(thread)
        thread.start()


def _dialogue(process: OmpProcess, scout: Scout, limits: Limits) -> str:
    """Give the process its task, answer its calls, and return its model's last message."""
    asked = process.prompt(limits, scout.first_message())
    last: Frame = {}
    while True:
        frame = process.receive(limits)
        kind = frame.get("type")
        if kind in {"response", "prompt_result"} and frame.get("id") == asked:
            _accepted(frame)
        elif kind == "host_tool_call":
            text, error = scout.call(frame.get("toolName"), frame.get("arguments"))
            result = {"content": [{"type": "text", "text": text}]}
            answer = {"type": "host_tool_result", "id": frame.get("id"), "result": result}
            process.send(limits, {**answer, "isError": True} if error else answer)
        elif kind == "message_end":
            last = _assistant(frame.get("message")) or last
        elif kind == "agent_end" and frame.get("isTerminal") is not False:
            messages = frame.get("messages")
            ended = _assistant(messages[-1]) if isinstance(messages, list) and messages else None
            return _said(ended or last)


def _accepted(frame: Frame) -> None:
    if frame.get("success") is False:
        raise ChoiceError(f"OMP did not take the task: {one_line(str(frame.get('error')), 200)}")
    data = frame.get("data") if frame.get("type") == "response" else frame
    if isinstance(data, dict) and data.get("agentInvoked") is False:
        raise ChoiceError("OMP took the task for a command of its own")


def _assistant(message: object) -> Frame | None:
    return message if isinstance(message, dict) and message.get("role") == "assistant" else None


def _said(message: Frame) -> str:
    """The text of a model's message. Raises ChoiceError for a message that is a failure."""
    stop = message.get("stopReason")
    if stop in {"error", "aborted"}:
        raise ChoiceError(f"the model failed: {one_line(str(message.get('errorMessage') or stop), 300)}")
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        part["text"]
        for part in parts
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )
