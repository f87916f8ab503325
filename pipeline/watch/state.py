"""What a watcher tells of itself in the data directory, for `retrieval status` and for whoever starts another one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from pipeline.engine import files

STATE = "watcher.json"
STOPPED = "stopped"


class Event(msgspec.Struct, omit_defaults=True):
    """The last change that was seen. at: seconds since 1970. count: how many came with it."""

    at: float
    path: str
    count: int = 1


class Built(msgspec.Struct):
    """The last build that went through. sources: those that were scanned, [] for all. reason: events, check or start."""

    at: float
    seconds: float
    sources: list[str]
    generation: str
    published: bool


class State(msgspec.Struct):
    """pid and birth name the process. now: starting, watching, building, waiting (for another run) or stopped.

    pending: names of sources that wait for a build. problem: the error that keeps the last good state in force, as errors are printed.
    config_problem: the same of the configuration. builds, events: since the start. settled: the files were looked at after they had
    become quiet. steps: what was computed, written and removed since the start.
    """

    pid: int
    birth: str
    started: float
    config: str
    now: str = "starting"
    backend: str = ""
    notes: list[str] = []
    sources: int = 0
    last_event: Event | None = None
    last_build: Built | None = None
    pending: list[str] = []
    problem: dict[str, Any] | None = None
    config_problem: dict[str, Any] | None = None
    builds: int = 0
    events: int = 0
    settled: bool = False
    steps: dict[str, list[int]] = {}


def write(data: Path, state: State) -> None:
    """Keep the state; only the watcher that was elected does."""
    files.write(data / STATE, msgspec.json.format(msgspec.json.encode(state), indent=1))


def read(data: Path) -> State | None:
    """The state that was kept last; None when there is none that can be read."""
    try:
        return msgspec.json.decode((data / STATE).read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError):
        return None


def alive(state: State) -> bool:
    """Whether the process that wrote the state still runs."""
    return state.now != STOPPED and birth(state.pid) == state.birth != ""


def birth(pid: int) -> str:
    """When a process was started, to tell it from a later one of the same number; "?" where only that it runs is known, "" if not."""
    if os.path.isdir("/proc/self"):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] in "ZX" else fields[19]
    if os.name == "nt":
        return "?"  # cannot be asked without harm
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        return "?"
    return "?"
