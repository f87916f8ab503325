"""`retrieval show`, `retrieval why` and `--version`."""

from __future__ import annotations

import time
from typing import Any

from pipeline.cli import output
from pipeline.cli.common import opened
from serve.errors import ExitCode

_DIGEST = 48  # characters of what a step left


def print_version(*, as_json: bool) -> None:
    """The version of this program and of the contract it follows."""
    from importlib.metadata import PackageNotFoundError, version

    from serve.contract import CONTRACT_VERSION

    try:
        number = version("retrieval")
    except PackageNotFoundError:
        number = "(a checkout that is not installed)"
    if as_json:
        output.emit({"version": number, "contract": CONTRACT_VERSION})
    else:
        output.say(f"retrieval {number}, contract {CONTRACT_VERSION}")


def show(skill: str, config: str, *, as_json: bool) -> int:
    """Print what is known of a skill. Returns the exit code."""
    from pipeline.admin import inspect

    with opened(config) as build:
        shown = inspect.show(build, skill)
    if as_json:
        output.emit(shown)
    else:
        _fields(shown)
    return int(ExitCode.OK)


def why(skill: str, config: str, *, as_json: bool) -> int:
    """Print why a skill stands where it does. Returns the exit code."""
    from pipeline.admin import inspect

    with opened(config) as build:
        reasons = inspect.why(build, skill)
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
            output.say(f"{output.styled(key.replace('_', ' ').ljust(width), 'dim')}  {output.plain(text)}")


def _print_why(reasons: dict[str, Any]) -> None:
    name = f"{output.styled(output.plain(reasons['name']), 'bold')}  " if reasons["name"] else ""
    output.say(f"{name}{output.plain(reasons['id'])}")
    status = f"{reasons['status']}: {reasons['reason']}" if reasons["reason"] else reasons["status"]
    _line("status", status)
    _line("next", reasons["next"])
    for key in ("winner", "duplicates", "native_in"):
        _line(key.replace("_", " "), reasons[key])
    for category, rules in _by_category(reasons["evidence"]).items():
        _line("category", f"{category} by {', '.join(rules)}")
    for diagnostic in reasons["diagnostics"]:
        _line("note", diagnostic)
    if reasons["last_run"]:
        age = output.age(time.time() - reasons["last_change_at"])
        _line("last change", f"{age} ago, in run {reasons['last_run']}: {reasons['changed_input']}")
    for row in reasons["steps"]:
        output.say(f"  {row['step'].ljust(10)} {output.plain(_happened(row))}")
    _line("cut off", reasons["cut_off"])


def _line(key: str, value: str | list[str]) -> None:
    text = ", ".join(value) if isinstance(value, list) else value
    if text:
        output.say(f"{output.styled(key.ljust(11), 'dim')} {output.plain(text)}")


def _by_category(evidence: list[dict[str, str]]) -> dict[str, list[str]]:
    """The rules that spoke for each category, in order, each in words."""
    rules: dict[str, list[str]] = {}
    for row in evidence:
        of = f"{row['rule']} “{row['keyword']}” in {row['field']}" if row["keyword"] else row["rule"]
        rules.setdefault(row["category"], []).append(of)
    return rules


def _happened(row: dict[str, Any]) -> str:
    """What a step did with the skill in that run."""
    how = "computed" if row["computed"] else "decided" if row["step"] == "select" else "taken over"
    if not row["changed"]:
        return f"{how}, the same result"
    if not row["before"]:
        return f"{how}, new: {row['after'][:_DIGEST]}"
    return f"{how}: {row['before'][:_DIGEST]} → {row['after'][:_DIGEST] or 'gone'}"
