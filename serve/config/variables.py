"""What a row of the table of variables is, and how a value is read by it."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, NoReturn

from serve.config.suggest import did_you_mean, shown
from serve.errors import ConfigError

Kind = Literal["text", "raw", "secret", "path", "url", "word", "names", "choice", "bool", "int", "float"]
Value = str | int | float | bool | None

TRUE = frozenset({"true", "1", "yes", "on"})
FALSE = frozenset({"false", "0", "no", "off"})
PREFIX = "RETRIEVAL_"

_WORD = re.compile(r"[a-z0-9][a-z0-9_-]{0,38}")
_NAMES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\s*,\s*[A-Za-z_][A-Za-z0-9_]*)*")
_INT = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_URL = re.compile(r"https?://[^\s/?#@]+(?:[/?][^\s#]*)?")


class Variable(NamedTuple):
    """One row. default: None when leaving it out has a meaning of its own.

    kind "raw" keeps white space at its ends, "word" is lower-case letters, digits, - and _, "secret" is never shown,
    "names" is names of variables with commas between them.
    low, high: bounds of a number, both allowed. aliases: more common names that are read when this one is not set.
    otherwise: the default in words, where it depends on something.
    """

    name: str
    kind: Kind
    help: str
    default: Value = None
    otherwise: str = ""
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def parse(row: Variable, text: str, where: str) -> Value:
    """The value of a variable other than a path. Raises ConfigError at `where`: nothing is guessed or clamped."""
    bare = text if row.kind in {"raw", "secret"} else text.strip()
    if row.kind == "bool":
        return _bool(row, bare, where)
    if row.kind in {"int", "float"}:
        return _number(row, bare, where)
    if row.kind == "choice":
        return _choice(row, bare, where)
    if row.kind == "word" and not _WORD.fullmatch(bare):
        _refuse(row, bare, where, "up to 39 lower-case letters, digits, - and _, a letter or digit first")
    if row.kind == "names" and not _NAMES.fullmatch(bare):
        _refuse(row, bare, where, "names of variables with commas between them")
    if row.kind == "url" and not _URL.fullmatch(bare):
        _refuse(row, bare.rpartition("@")[2], where, "an http:// or https:// address without a password in it")
    if row.kind == "text" and not bare.isprintable():
        _refuse(row, bare, where, "text on one line, without control characters")
    if row.kind == "secret" and not (text.isascii() and text.isprintable() and " " not in text):
        raise ConfigError(
            f"{row.name} holds a character that cannot be sent",
            where=where,
            next_step="copy it again: it is one word of ASCII characters",
        )
    return bare


def bounds(row: Variable) -> str:
    """The bounds of a number in words."""
    return f"from {_plain(row.low)} to {_plain(row.high)}"


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _refuse(row: Variable, text: str, where: str, wanted: str) -> NoReturn:
    raise ConfigError(f"{row.name} is {shown(text)}", where=where, next_step=f"set it to {wanted}, or remove it")


def _bool(row: Variable, text: str, where: str) -> bool:
    folded = text.casefold()
    if folded not in TRUE | FALSE:
        _refuse(row, text, where, "true or false")
    return folded in TRUE


def _choice(row: Variable, text: str, where: str) -> str:
    folded = text.casefold()
    if folded not in row.choices:
        wanted = f"set it to one of {', '.join(row.choices)}"
        raise ConfigError(
            f"{row.name} is {shown(text)}", where=where, next_step=did_you_mean(text, row.choices, wanted)
        )
    return folded


def _number(row: Variable, text: str, where: str) -> int | float:
    wanted = f"a {'whole ' if row.kind == 'int' else ''}number {bounds(row)}"
    if len(text) > 32 or not (_INT if row.kind == "int" else _FLOAT).fullmatch(text):
        _refuse(row, text, where, wanted)
    value = int(text) if row.kind == "int" else float(text)
    if not row.low <= value <= row.high:
        _refuse(row, text, where, wanted)
    return value
