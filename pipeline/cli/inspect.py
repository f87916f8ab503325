"""`retrieval show`, `retrieval why` and `--version`."""

from __future__ import annotations

import time
from typing import Any

from pipeline.cli import output
from pipeline.cli.common import open_build
from serve.errors import ExitCode


def print_version() -> None:
    """The version of this program and the contract it follows."""
    from importlib.metadata import PackageNotFoundError, version

    from serve.contract import CONTRACT_VERSION

    try:
        number = version("retrieval")
    except PackageNotFoundError:
        number = "from a checkout that is not installed"
    output.say(f"retrieval {number} (contract {CONTRACT_VERSION})")


def show(skill: str, config: str, *, as_json: bool) -> int:
    """Print what is known of a skill. Returns the exit code."""
    from pipeline.admin import inspect

    build = open_build(config, quiet=True)
    try:
        shown = inspect.show(build, skill)
    finally:
        build.close()
    if as_json:
        output.emit(shown)
    else:
        _fields(shown)
    return int(ExitCode.OK)


def why(skill: str, config: str, *, as_json: bool) -> int:
    """Print why a skill stands where it does. Returns the exit code."""
    from pipeline.admin import inspect

    build = open_build(config, quiet=True)
    try:
        reasons = inspect.why(build, skill)
    finally:
        build.close()
    if as_json:
        output.emit(reasons)
    else:
        _print_why(reasons)
    return int(ExitCode.OK)


def _fields(shown: dict[str, Any]) -> None:
    width = max(map(len, shown))
    for key, value in shown.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if text:
            output.say(f"{output.styled(key.replace('_', ' ').rjust(width), 'dim')}  {output.plain(text)}")


def _print_why(reasons: dict[str, Any]) -> None:
    output.say(f"{output.styled(output.plain(reasons['name']), 'bold')}  {output.plain(reasons['id'])}")
    status = f"{reasons['status']}: {reasons['reason']}" if reasons["reason"] else reasons["status"]
    output.say(f"status      {output.plain(status)}")
    for row in reasons["evidence"]:
        rule = f"{row['rule']} “{row['keyword']}” in {row['field']}" if row["keyword"] else row["rule"]
        output.say(f"category    {output.plain(row['category'])} by {output.plain(rule)}")
    for key in ("winner", "duplicates", "native_in", "diagnostics"):
        value = reasons[key]
        text = ", ".join(value) if isinstance(value, list) else value
        if text:
            output.say(f"{key.replace('_', ' ').ljust(11)} {output.plain(text)}")
    if reasons["last_run"]:
        age = output.age(time.time() - reasons["last_change_at"])
        output.say(f"last change {age} ago, in run {reasons['last_run']}")
    for row in reasons["steps"]:
        how = "computed" if row["computed"] else "taken from the memo or followed"
        change = f"{row['before'][:40] or '(nothing)'} → {row['after'][:40] or '(nothing)'}" if row["changed"] else "same result"
        output.say(f"  {row['step'].ljust(10)} {how}; {output.plain(change)}")
    if reasons["cut_off"]:
        output.say(f"cut off     {output.plain(reasons['cut_off'])}")
