"""Checks the arguments of a call against a tool's schema. What does not fit is an error that says how to mend it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serve.config.suggest import shown
from serve.errors import ExitCode, OperatorError


def checked(given: Mapping[str, Any] | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with defaults filled in. Raises OperatorError for the first that does not fit: nothing is guessed.

    schema: an object of strings and integers with bounds.
    """
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    values = dict(given or {})
    for name in values:
        if name not in properties:
            raise _unusable(f"there is no argument {shown(name)}", f"use {', '.join(properties)}")
    for name, rule in properties.items():
        if values.get(name) is None:
            if name in schema["required"]:
                raise _unusable(f"the argument `{name}` is missing", f"{rule['description']}")
            values[name] = rule["default"]
        elif rule["type"] == "string":
            _check_text(name, values[name], rule)
        else:
            values[name] = _integer(name, values[name], rule)
    return values


def _check_text(name: str, value: object, rule: Mapping[str, Any]) -> None:
    if not isinstance(value, str):
        raise _unusable(f"the argument `{name}` is {shown(value)}, not text", "write it as one string")
    if not value.strip():
        raise _unusable(f"the argument `{name}` is empty", f"{rule['description']}")
    if len(value) > rule["maxLength"]:
        raise _unusable(f"the argument `{name}` has {len(value)} characters", f"use at most {rule['maxLength']}")


def _integer(name: str, value: object, rule: Mapping[str, Any]) -> int:
    """A whole number within its bounds; 5.0 is one, as JSON has no other way to tell them apart."""
    least, most = rule["minimum"], rule["maximum"]
    if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most:
        number = int(value)
        if number == value:
            return number
    raise _unusable(f"the argument `{name}` is {shown(value)}", f"use a whole number from {least} to {most}")


def _unusable(what: str, next_step: str) -> OperatorError:
    return OperatorError(what, next_step=next_step, code=ExitCode.USAGE)
