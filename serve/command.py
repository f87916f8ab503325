"""The command line of `python -m serve`, and what it starts."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from serve import settings
from serve.config.suggest import did_you_mean, shown
from serve.errors import ConfigError

if TYPE_CHECKING:
    from serve.backend import Backend
    from serve.server import ToolServer

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_WITH_VALUE = {option: name for name, option in settings.OPTIONS.items()} | {"--http": ""}


class Wanted(NamedTuple):
    """variables: values that options gave. http: host and port, None for standard input and output."""

    variables: dict[str, str]
    http: tuple[str, int] | None = None
    help: bool = False


def parsed(words: list[str]) -> Wanted:
    """The command line. Raises ConfigError. argparse would cost each start 10 ms."""
    variables: dict[str, str] = {}
    http: tuple[str, int] | None = None
    rest = iter(words)
    for word in rest:
        if word in {"-h", "--help"}:
            return Wanted({}, help=True)
        option, given, value = word.partition("=")
        if option not in _WITH_VALUE:
            next_step = did_you_mean(option, _WITH_VALUE, "run `python -m serve --help`")
            raise ConfigError(f"there is no option {shown(option)}", where="python -m serve", next_step=next_step)
        if not given:
            value = next(rest, "")
        if not value:
            raise ConfigError(f"{option} needs a value", where="python -m serve", next_step="run it with --help")
        if option == "--http":
            http = _address(value)
        else:
            variables[_WITH_VALUE[option]] = value
    return Wanted(variables, http)


def _address(text: str) -> tuple[str, int]:
    """Host and port. Only this machine may ask: whoever is let in can have packages copied into a harness."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if colon else LOOPBACK[0]
    if host not in LOOPBACK:
        raise ConfigError(
            f"--http serves this machine only, not {shown(host)}",
            where="--http",
            next_step=f"use one of {', '.join(LOOPBACK)}, or the port alone",
        )
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        raise ConfigError(f"{shown(port)} is no port", where="--http", next_step="use a number from 0 to 65535")
    return host, int(port)


def start(wanted: Wanted) -> tuple[Backend, ToolServer]:
    """What answers, with nothing loaded yet. Warnings about the settings go to standard error. Raises ConfigError."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    reading = settings.read(options=wanted.variables)
    for warning in reading.warnings:
        sys.stderr.write(f"{warning}\n")
    for name, value in reading.passed_on.items():
        os.environ.setdefault(name, value)  # where whoever starts the scout looks for it
    from serve.backend import Backend
    from serve.server import ToolServer

    backend = Backend(reading.settings)
    return backend, ToolServer(backend)
