"""The watcher as a service of the user: a systemd user unit, or a launchd agent. Texts here, the doing in `install`."""

from __future__ import annotations

import plistlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

NAME = "retrieval-watch"
UNIT = f"{NAME}.service"
LABEL = "retrieval.watch"


class Service(NamedTuple):
    """What is to run. command: program and arguments. folder: to run in. variables: of the environment."""

    command: tuple[str, ...]
    folder: Path
    variables: Mapping[str, str]


def unit(service: Service) -> str:
    """The text of the systemd unit. Raises ValueError for what a unit cannot hold, such as a line break."""
    environment = [f"Environment={_quoted(f'{name}={value}')}" for name, value in sorted(service.variables.items())]
    lines = [
        "# Written by `retrieval watch --install`, which replaces it.",
        "[Unit]",
        "Description=Retrieval: keeps the index of skills up to date with their folders",
        # Tried for as long as it takes: a configuration that is wrong now may be mended later.
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        f"ExecStart={_program(service.command[0])} {' '.join(_quoted(word, command=True) for word in service.command[1:])}",
        f"WorkingDirectory={_escaped(str(service.folder))}",
        *environment,
        "Restart=on-failure",
        "RestartSec=15",
        "TimeoutStopSec=90",
        "KillMode=mixed",
        "Nice=5",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def agent(service: Service, log: Path) -> bytes:
    """The property list of the launchd agent. log: the file that takes what it says."""
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(service.command),
            "WorkingDirectory": str(service.folder),
            "EnvironmentVariables": dict(service.variables),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 15,
            "ExitTimeOut": 90,
            "Nice": 5,
            "StandardOutPath": str(log),
            "StandardErrorPath": str(log),
        }
    )


def by_hand(service: Service) -> str:
    """A line for a shell that does what the service would."""
    import shlex

    variables: Sequence[str] = [f"{name}={shlex.quote(value)}" for name, value in sorted(service.variables.items())]
    return " ".join([*variables, shlex.join(service.command)])


def _escaped(text: str) -> str:
    """A text in which nothing means anything to systemd."""
    if "\n" in text or "\r" in text:
        raise ValueError("a line break")
    return text.replace("%", "%%")


def _program(path: str) -> str:
    """The program's path: nothing is filled in there, and systemd takes none with quotes or backslashes."""
    if any(mark in path for mark in "\"'\\"):
        raise ValueError("quotes or backslashes")
    return f'"{_escaped(path)}"'


def _quoted(text: str, *, command: bool = False) -> str:
    quoted = _escaped(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted.replace("$", "$$") if command else quoted}"'
