"""`retrieval retrieve`: what an agent gets from `retrieve_skill`, on the command line."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeline.cli import output
from pipeline.cli.serve import serving_environment
from serve.errors import ExitCode
from serve.threads import quiet_threads

if TYPE_CHECKING:
    from collections.abc import Iterator


def retrieve(query: str, config: str, *, harness: str, selector: str, as_json: bool) -> int:
    """Answer one query as the MCP server of a harness does. Returns the exit code."""
    from serve.settings import load

    options = {"RETRIEVAL_HARNESS": harness, "RETRIEVAL_SELECTOR": selector}
    chosen = load(serving_environment(config), {name: value for name, value in options.items() if value})
    quiet_threads()
    from serve.retrieve import Retriever

    # One answer: a scout that is started for the next one would only have to be ended.
    retriever = Retriever(replace(chosen, scout=replace(chosen.scout, standby=False)))
    try:
        with _interruptible() as stop:
            answer = retriever.skill(query, cancelled=stop, progress=_tell)
    finally:
        retriever.close()
    if stop.is_set():
        raise KeyboardInterrupt
    if as_json:
        output.emit(answer)
    else:
        _print(answer)
    return int(_code(answer))


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Ctrl-C as a cancelled call: the scout is ended in its own time, and leaves nothing behind."""
    stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda _number, _frame: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _tell(fraction: float, text: str) -> None:
    if sys.stderr.isatty() and fraction < 1:
        sys.stderr.write(output.styled(output.plain(text), "dim", sys.stderr) + "\n")
        sys.stderr.flush()


def _print(answer: dict[str, Any]) -> None:
    from serve.render import skill_text

    for line in skill_text(answer).split("\n"):
        output.say(output.plain(line))


def _code(answer: dict[str, Any]) -> ExitCode:
    if answer["selection"]["failed"]:
        return ExitCode.FAILED
    return ExitCode.PROBLEMS if answer["projection"]["state"] == "failed" else ExitCode.OK
