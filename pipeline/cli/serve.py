"""`retrieval serve`: the MCP server with the settings of the command line, in this process's place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config.lookup import data_folder
from pipeline.config.variables import BY_NAME
from pipeline.settings import locate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.config.lookup import Lookup

_COMMANDS = ("RETRIEVAL_IWE_COMMAND", "RETRIEVAL_IWEC_COMMAND", "RETRIEVAL_OMP_COMMAND")


def serve(config: str, *, harness: str = "", selector: str = "", http: str = "") -> int:
    """Become the MCP server. Returns its exit code only where a process cannot become another one."""
    environment = serving_environment(config)
    given = {"--harness": harness, "--selector": selector, "--http": http}
    options = [part for option, value in given.items() if value for part in (option, value)]
    # Without the current folder among the places where Python looks for modules: it may be anybody's project.
    command = [sys.executable, "-P", "-m", "serve", *options]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        os.execve(sys.executable, command, environment)  # noqa: S606 - no shell is wanted
    return subprocess.run(command, env=environment, check=False).returncode


def serving_environment(config: str = "", environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment in which `serve.settings` reads what the command line reads here. Raises ConfigError.

    What stands in `.env` files is carried over, paths made absolute, since a server reads no `.env` of the current folder.
    """
    from serve.settings import from_lookup, passed_on

    process = dict(os.environ if environ is None else environ)
    lookup, found = locate(config or None, process)
    carried = {name: text for name in BY_NAME if (text := _text(lookup, name))}
    carried["RETRIEVAL_HOME"] = _escaped(data_folder(lookup))
    if found is not None:
        carried["RETRIEVAL_CONFIG"] = _escaped(found)
    return {**process, **passed_on(lookup, from_lookup(lookup)), **carried}


def _text(lookup: Lookup, name: str) -> str:
    """The value of a variable as the environment can hold it whatever the current folder is; "" when it is unset."""
    used = lookup.name_in_use(name)
    if not used:
        return ""
    if BY_NAME[name].kind == "path":
        path = lookup.path(name)
        return "" if path is None else _escaped(path)
    if name in _COMMANDS:
        return lookup.command(name).replace("$", "$$")
    return lookup.environ[used]


def _escaped(path: Path) -> str:
    """A path as it is read back: a dollar sign would begin a variable."""
    return str(path).replace("$", "$$")
