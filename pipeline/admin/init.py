"""Writing a first configuration where the other commands will find it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import resources
from pipeline.config import guess, hermes
from pipeline.config.env import Environment, read_env_file
from pipeline.config.lookup import Lookup, config_places, home_of
from pipeline.config.paths import Expander, absolute
from pipeline.config.values import Machine
from pipeline.engine import files
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEADER = """# Where Retrieval finds skills. Each [[sources]] block is one folder; of equal skills the first block's is kept.
# All keys are explained in docs/configuration.md of the project.
"""
_STATES = """#
# state: "cold" (in this library only), "native" (a harness shows these skills itself), "hidden" (installed, but kept out
# of its prompt) or "archived" (put away, still found).
"""
_EXAMPLES = "examples/library"


def write_config(
    config: str, folders: Sequence[str], environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> tuple[Path, list[dict[str, str]]]:
    """Write a configuration for `folders`, or for the bundled example library when there are none.

    config: what `--config` names. Returns the file in force and its blocks (name, path, state, harness where there is
    one); no blocks when that file existed and was left alone. Raises OperatorError for a folder that is none.
    """
    lookup = _lookup(os.environ if environ is None else environ, cwd or Path.cwd())
    target = _target(config, lookup)
    if os.path.lexists(target):
        return target, []
    chosen = [_folder(folder, lookup) for folder in folders] or [str(resources.bundled(_EXAMPLES))]
    blocks = _blocks(list(dict.fromkeys(chosen)), lookup)
    files.write(target, _text(blocks))
    return target, blocks


def _lookup(environ: Mapping[str, str], cwd: Path) -> Lookup:
    file = read_env_file(cwd / ".env", environ)
    layered = Environment(environ, () if file is None else (file,))
    return Lookup(
        layered, Machine(layered, absolute(home_of(environ, os.name), str(cwd), os.name, "home folder"), cwd, os.name)
    )


def _target(config: str, lookup: Lookup) -> Path:
    """The file that `load_settings` would read; where there is none, the one in the person's own folder."""
    if config:
        return Path(_expanded(config, lookup, "--config"))
    named = lookup.path("RETRIEVAL_CONFIG")
    if named is not None:
        return named
    places = config_places(lookup)
    return next((path for path in places if os.path.lexists(path)), places[1])


def _folder(text: str, lookup: Lookup) -> str:
    path = _expanded(text, lookup, "the folder")
    if not os.path.isdir(path):
        raise OperatorError(
            "there is no such folder", where=path, next_step="name a folder of skills", code=ExitCode.USAGE
        )
    # Raises ConfigError for a name that sources.toml could not be read with again.
    return absolute(path, str(lookup.machine.cwd), lookup.machine.os_name, "the command line")


def _expanded(text: str, lookup: Lookup, where: str) -> str:
    """A path of the command line made absolute. A shell expands ~ and variables itself, unless they were quoted."""
    machine = lookup.machine
    plain = os.path.normpath(machine.cwd / text)
    if os.path.lexists(plain) or not text.startswith(("~", "$")):
        return plain
    expanded = Expander(lookup.environ, machine.home, machine.os_name, where).expand(text)
    return absolute(expanded, str(machine.cwd), machine.os_name, where)


def _blocks(folders: Sequence[str], lookup: Lookup) -> list[dict[str, str]]:
    """Name, path, state and harness of each folder; a Hermes home stands for its profiles too."""
    machine = lookup.machine
    default = hermes.default_home(machine.environ, machine.home, machine.os_name)
    home = str(lookup.path("HERMES_HOME") or default)
    blocks: list[dict[str, str]] = []
    for folder in folders:
        whole = folder in {home, default}
        harness = "hermes" if whole else guess.harness_of(folder, home=machine.home, hermes_home=home, os_name=os.name)
        block = {"name": "", "path": folder, "state": guess.state_of(folder, harness, os.name)}
        block["name"] = _name(harness or _base(folder), [other["name"] for other in blocks])
        if harness:
            block["harness"] = harness
        if whole:
            block["profiles"] = "true"
        blocks.append(block)
    return blocks


def _base(folder: str) -> str:
    if folder == str(resources.bundled(_EXAMPLES)):
        return "examples"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(folder)).strip("-._")[:60] or "skills"


def _name(base: str, taken: Sequence[str]) -> str:
    """`base`, or with a number behind it when it is taken; case does not tell names apart."""
    used = {name.casefold() for name in taken}
    name, count = base, 2
    while name.casefold() in used:
        name, count = f"{base}-{count}", count + 1
    return name


def _text(blocks: Sequence[Mapping[str, str]]) -> bytes:
    lines = [_HEADER, _STATES]
    for block in blocks:
        lines.append("\n[[sources]]\n")
        for key, value in block.items():
            # In a path a dollar sign begins a variable and stands for itself when doubled.
            text = value.replace("$", "$$").replace("%", "%%" if os.name == "nt" else "%") if key == "path" else value
            lines.append(f"{key} = {value if key == 'profiles' else json.dumps(text, ensure_ascii=False)}\n")
    return "".join(lines).encode("utf-8")
