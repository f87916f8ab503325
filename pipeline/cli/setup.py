"""`retrieval init`: a first sources.toml."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pipeline.cli import output
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from collections.abc import Sequence


def init(folders: Sequence[str], config: str, *, as_json: bool) -> int:
    """Write sources.toml where the program looks for it; an existing one is left as it is. Returns the exit code."""
    from pipeline.admin.init import write_config

    target, blocks = write_config(config, folders)
    if not blocks and folders:
        raise OperatorError(
            "there is a sources.toml already, and the folders were not added",
            where=str(target),
            next_step="add a [[sources]] block for each to that file, or name another file with --config",
            code=ExitCode.USAGE,
        )
    if as_json:
        output.emit({"config": str(target), "written": bool(blocks), "sources": blocks})
        return int(ExitCode.OK)
    output.say(f"{'wrote' if blocks else 'left as it is:'} {output.plain(target)}")
    for block in blocks:
        of = f" of {block['harness']}" if block.get("harness") else ""
        output.say(f"  {output.plain(block['name'])}: {output.plain(block['path'])} ({block['state']}{of})")
    named = f" --config {shlex.quote(output.plain(config))}" if config else ""
    output.say(f"next: look it over, then run `retrieval build{named}`")
    return int(ExitCode.OK)
