"""Writing a first configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from pipeline import resources
from pipeline.engine import files
from serve.errors import ExitCode, OperatorError

_HEADER = """# Where Retrieval finds skills. Each [[sources]] block is one folder; the first one wins among equals.
# All settings: sources.example.toml and docs/configuration.md of the project.
"""
_BLOCK = """
[[sources]]
name = {name}
kind = "skills"
path = {path}
state = "cold" # cold: only in this library · native: the harness shows it itself · hidden · archived
"""


def write_config(target: Path, folders: Sequence[Path]) -> bool:
    """Write a configuration for `folders`, or for the bundled example library when there are none.

    Returns False, writing nothing, when `target` exists. Raises OperatorError for a folder that does not exist.
    """
    if target.exists():
        return False
    for folder in folders:
        if not folder.is_dir():
            raise OperatorError(
                "there is no such folder", where=str(folder), next_step="name a folder of skills", code=ExitCode.USAGE
            )
    blocks = [_HEADER]
    chosen = list(folders) or [resources.bundled("examples/library")]
    for name, folder in zip(_names(chosen), chosen, strict=True):
        blocks.append(_BLOCK.format(name=json.dumps(name), path=json.dumps(str(folder), ensure_ascii=False)))
    files.write(target, "".join(blocks).encode("utf-8"))
    return True


def _names(folders: Sequence[Path]) -> list[str]:
    """A unique name for each folder, from its last part."""
    names: list[str] = []
    for folder in folders:
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip("-._") or "skills"
        if folder == resources.bundled("examples/library"):
            base = "examples"
        name, count = base[:60], 2
        while name.casefold() in {other.casefold() for other in names}:
            name, count = f"{base[:60]}-{count}", count + 1
        names.append(name)
    return names
