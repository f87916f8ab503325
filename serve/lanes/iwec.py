"""One warm `iwec`, the MCP server of IWE, over the catalog: started, asked, restarted when it dies, and left behind by nobody.

Only tools that read can be asked for: no other name is ever put into a request. The program gets an empty environment but for
a few names, and ends by itself when its standard input does, so that it outlives this process in no case.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from serve.lanes.iwec_protocol import VERSION, NotStarted, Patience, Question, Reply, Tool, in_words, reply_of
from serve.lanes.iwec_reader import Garbage, Pipes
from serve.lanes.pace import Pace

CONFIGURATION = Path(".iwe", "config.toml")
IN_FLIGHT = 4  # so many requests fit into a pipe whatever they ask: writing one never waits
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT")
_GRACE = 0.3  # seconds between the end of its input and a kill: it only reads, nothing of it can be spoiled


class Iwec:
    """The program and its supervision. `ask` may be called from any thread; nothing in it waits longer than it is told.

    find: gives the program to start, or raises NotStarted with the reason; called in the background before each start.
    """

    def __init__(self, folder: Path, find: Callable[[], str], patience: Patience | None = None) -> None:
        self.folder = folder
        self.patience = patience or Patience()
        self._find = find
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._pipes: Pipes | None = None
        self._ready = False
        self._why = "not started"
        self._ending = ""  # why this process ends the program, until it has ended
        self._asked: dict[int, Question] = {}
        self._number = 0
        self._paces: dict[str, Pace] = {}
        self._started_at = 0.0
        self._identity: tuple[int, ...] = ()
        self.version = ""
        self.starts = 0
        self.answers = 0

    def start(self) -> None:
        """Start in the background; again is no harm."""
        with self._lock:
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._supervise, name="iwec", daemon=True)
                self._why = "IWE is starting"
                self._thread.start()

    def ask(self, kind: str, tool: Tool, arguments: Mapping[str, Any], budget: float) -> Question:
        """Send a request. Collect it within `budget` seconds; what comes later is thrown away.

        kind: questions of one kind are about equally hard; one kind that is late is left alone, others are not.
        """
        with self._lock:
            reason = self._refusal(kind)
            if reason:
                return Question(kind, budget, Reply(reason=reason))
            question = Question(kind, budget)
            self._number += 1
            self._asked[self._number] = question
            self._send("tools/call", {"name": Tool(tool).value, "arguments": dict(arguments)}, self._number)
            return question

    def collect(self, question: Question) -> Reply:
        """The answer, or why there is none in time."""
        if question.done.wait(max(0.0, question.deadline - time.monotonic())):
            return question.reply
        with self._lock:
            if question.done.is_set():
                return question.reply
            question.given_up = True
            self._pace(question.kind).given_up()
        return Reply(reason=f"no answer within {in_words(question.deadline - question.begun)}")

    def restart(self, reason: str) -> None:
        """End the program; another is started."""
        with self._lock:
            self._end(reason)

    def status(self) -> dict[str, Any]:
        """What runs, and why not if nothing does."""
        with self._lock:
            pid = self._pipes.process.pid if self._pipes else None
            return {
                "running": self._ready,
                "reason": "" if self._ready else self._why,
                "pid": pid,
                "version": self.version,
                "starts": self.starts,
                "answers": self.answers,
                "late": {kind: pace.late for kind, pace in self._paces.items() if pace.late},
                "milliseconds": {kind: round(pace.took * 1000, 1) for kind, pace in self._paces.items()},
            }

    def close(self) -> None:
        """End the program and everything that waits for it. May be called twice."""
        with self._lock:
            self._closing = True
            self._why = "closed"
            self._wake.set()
            pipes, thread = self._pipes, self._thread
            if pipes is not None:
                pipes.end_input()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_GRACE)
            with self._lock:
                pipes = self._pipes
            if pipes is not None:
                pipes.kill()
            thread.join()

    def _refusal(self, kind: str) -> str:
        """Why a question is not put now; "" when it is. Ends a program that seems to be stuck. Held: the lock."""
        now = time.monotonic()
        if self._pipes is not None and not self._ending and (fault := self._fault(now)):
            self._end(fault)
        if self._pipes is None or not self._ready:
            if _identity(self.folder) != self._identity:
                self._wake.set()  # there may be a catalog now
            return self._why
        pace = self._pace(kind)
        if pace.overdue or len(self._asked) >= IN_FLIGHT:
            return "IWE is still busy with an earlier query"
        rest = pace.rest(now)
        return (
            f"IWE took {in_words(pace.took)} for its last answer; it is asked again in {in_words(rest)}" if rest else ""
        )

    def _fault(self, now: float) -> str:
        """Why the program that runs is of no use any more; "" when it is well. Held: the lock."""
        if _identity(self.folder) != self._identity:
            return "the catalog was made anew"
        if not self._ready:
            waited = now - self._started_at
            return f"IWE was not ready after {in_words(waited)}" if waited > self.patience.starting else ""
        waited = now - min((question.begun for question in self._asked.values()), default=now)
        return f"IWE was silent for {in_words(waited)}" if waited > self.patience.silent else ""

    def _pace(self, kind: str) -> Pace:
        return self._paces.setdefault(kind, Pace())

    def _end(self, reason: str) -> None:
        """Kill the program for a reason; its supervisor notices. Held: the lock."""
        if self._pipes is None or self._ending or self._closing:
            return
        self._why = self._ending = f"{reason}; it is started again"
        self._ready = False
        self._pipes.kill()
        self._drop(self._why)

    def _drop(self, reason: str) -> None:
        """Nobody answers any more what was asked. Held: the lock."""
        for question in self._asked.values():
            question.reply = Reply(reason=reason)
            question.done.set()
        self._asked.clear()
        for pace in self._paces.values():
            pace.forget()

    def _supervise(self) -> None:
        pause = self.patience.first_pause
        while not self._is_closing():
            self._wake.clear()
            answers = self.answers
            try:
                reason = self._live()
            except NotStarted as why:
                reason = str(why)
            except (OSError, ValueError) as error:
                reason = f"IWE could not be started: {error}"
            with self._lock:
                self._ready, self._pipes = False, None
                self._why = "closed" if self._closing else self._ending or reason
                self._ending = ""
                self._drop(self._why)
            if self.answers > answers:
                pause = self.patience.first_pause
            if not self._is_closing():
                self._wake.wait(pause)
            pause = min(2 * pause, self.patience.longest_pause)

    def _is_closing(self) -> bool:
        with self._lock:
            return self._closing

    def _live(self) -> str:
        """One life of the program, from its start to its end. Returns why it ended."""
        with self._lock:
            self._identity = _identity(self.folder)
        if not self._identity:
            raise NotStarted("there is no catalog yet; run `retrieval build`")
        command = self._find()
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        pipes = Pipes(command, self.folder, environment)
        with self._lock:
            self._pipes, self._started_at, self._why = pipes, time.monotonic(), "IWE is starting"
            self.starts += 1
            if self._closing:
                pipes.kill()
            client = {"name": "retrieval", "version": "1"}
            self._send("initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}, 0)
        try:
            for message in pipes.messages():
                self._receive(message)
        except Garbage as error:
            pipes.kill()
            pipes.reap(_GRACE)
            return str(error)
        return pipes.reap(_GRACE)

    def _receive(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        with self._lock:
            if "method" in message:
                if message["method"] == "ping" and number is not None:  # all else that it may ask for is not offered
                    self._write({"jsonrpc": "2.0", "id": number, "result": {}})
            elif number == 0:
                self._begin(message)
            elif isinstance(number, int) and number in self._asked:
                self._answered(self._asked.pop(number), message)

    def _begin(self, message: dict[str, Any]) -> None:
        """The handshake was answered. Held: the lock."""
        result = message.get("result")
        if not isinstance(result, dict):
            raise Garbage(f"IWE refuses to begin: {str(message.get('error'))[:200]}")
        info = result.get("serverInfo")
        self.version = str(info.get("version", ""))[:40] if isinstance(info, dict) else ""
        self._send("notifications/initialized", {}, None)
        if not self._closing:
            self._ready = True

    def _answered(self, question: Question, message: dict[str, Any]) -> None:
        """Hand an answer to who waits for it, or take note of when it came. Held: the lock."""
        now = time.monotonic()
        self.answers += 1
        self._pace(question.kind).answered(now, now - question.begun, in_time=not question.given_up)
        question.reply = reply_of(message)
        question.done.set()

    def _send(self, method: str, params: dict[str, Any], number: int | None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        self._write(message)

    def _write(self, message: dict[str, Any]) -> None:
        if self._pipes is not None:
            self._pipes.write(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def _identity(folder: Path) -> tuple[int, ...]:
    """Which library it is, () for none: one that was removed and made again is another, and nobody watches it."""
    try:
        top, configuration = os.stat(folder), os.stat(folder / CONFIGURATION)
    except OSError:
        return ()
    return (top.st_dev, top.st_ino, configuration.st_ino)
