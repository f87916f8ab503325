"""`retrieval init`: a first sources.toml."""

from __future__ import annotations

import os
from pathlib import Path

from pipeline.cli import output
from serve.errors import ExitCode, OperatorError


def init(folders: list[str], config: str, *, as_json: bool) -> int:
    """Write sources.toml where the program looks for it; an existing one is left as it is. Returns the exit code."""
    from pipeline.admin.init import write_config

    target = Path(config).expanduser().absolute() if config else _default_target()
    made = write_config(target, [Path(folder).expanduser().absolute() for folder in folders])
    if as_json:
        output.emit({"config": str(target), "written": made})
    elif made:
        output.say(f"wrote {target}")
        output.say("next: look it over, then run `retrieval build`")
    else:
        output.say(f"{target} exists already and was left as it is")
        if folders:
            raise OperatorError(
                "the folders were not added",
                where=str(target),
                next_step="add a [[sources]] block for each to that file, or name another one with --config",
                code=ExitCode.USAGE,
            )
    return int(ExitCode.OK)


def _default_target() -> Path:
    named = os.environ.get("RETRIEVAL_CONFIG")
    if named:
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base) / "retrieval" / "sources.toml"
