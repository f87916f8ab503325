"""What is said between this process and `iwec`: which tools are asked for, a question on its way, and what an answer says."""

from __future__ import annotations

import shutil
import threading
import time
from enum import StrEnum
from typing import Any, NamedTuple

VERSION = "2025-06-18"


class Tool(StrEnum):
    """The tools that are asked for. All of them read."""

    FIND = "iwe_find"
    RETRIEVE = "iwe_retrieve"


class Patience(NamedTuple):
    """Seconds: until a started program must have answered, until a question counts as lost, between two starts."""

    starting: float = 120.0
    silent: float = 120.0
    first_pause: float = 1.0
    longest_pause: float = 60.0


class Reply(NamedTuple):
    """The texts of a tool's answer, or none and the reason."""

    texts: tuple[str, ...] = ()
    reason: str = ""


class NotStarted(Exception):  # noqa: N818 - not an error: the lane is without its program, and says so
    """Why there is nothing to start."""


class Question:
    """One request on its way."""

    def __init__(self, kind: str, budget: float, reply: Reply | None = None) -> None:
        self.kind = kind
        self.begun = time.monotonic()
        self.deadline = self.begun + budget
        self.given_up = False
        self.done = threading.Event()
        self.reply = reply or Reply()
        if reply is not None:
            self.done.set()


def reply_of(message: dict[str, Any]) -> Reply:
    """The texts in a response, or what is wrong with it."""
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        return Reply(reason=f"IWE says: {str(error.get('message'))[:200]}")
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(content, list) or not isinstance(result, dict):
        return Reply(reason="IWE gave an answer of another form")
    texts = tuple(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    if result.get("isError") or not texts:
        return Reply(reason=f"IWE says: {''.join(texts)[:200] or 'nothing'}")
    return Reply(texts)


def in_words(seconds: float) -> str:
    """A length of time for people."""
    return (
        f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"
    )


def on_path(command: str) -> str:
    """The program's path. Raises NotStarted when it is not there."""
    found = shutil.which(command)
    if found is None:
        raise NotStarted(f"`{command}` is not installed" if command == "iwec" else f"{command} is no program")
    return found
