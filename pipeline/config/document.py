"""Reads `sources.toml` and checks its keys and types. Every complaint points at file:line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pipeline.config.files import read_text
from pipeline.config.keys import POLICY, SOURCE, TOP, Key
from pipeline.config.suggest import did_you_mean, shown
from pipeline.config.toml_lines import Address, line_numbers
from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LARGEST = 1024 * 1024  # bytes of sources.toml
MOST_GLOBS = 256
LONGEST_GLOB = 512  # characters

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_POSITION = re.compile(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", re.DOTALL)


class Document(NamedTuple):
    """A parsed file and the lines of its keys."""

    path: Path
    data: Mapping[str, Any]
    lines: Mapping[Address, int]

    def at(self, *address: str | int) -> str:
        """file:line of a key, or of the nearest thing around it."""
        line = self.lines.get((*address, 0))  # an array of tables begins with its first one
        while address and address not in self.lines and line is None:
            address = address[:-1]
        return f"{self.path}:{self.lines.get(address, line or 1)}"


class Block(NamedTuple):
    """One `[[sources]]` block whose keys and types are right. Texts are as written, "" when left out."""

    name: str
    kind: str
    path: str
    enabled: bool
    state: str
    harness: str
    group: str
    profiles: bool
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    where: str
    path_where: str


def read_document(path: Path) -> Document:
    """Parses the file. Raises ConfigError with file:line:column when it is no TOML."""
    text = read_text(path, LARGEST, path.name)
    import tomllib  # a search reads the environment only, and saves its 8 ms

    try:
        return Document(path, tomllib.loads(text), line_numbers(text))
    except RecursionError as error:
        raise ConfigError(f"{path.name} is nested too deeply", where=str(path), next_step="flatten it") from error
    except ValueError as error:
        message, where = _position(str(error), path, text)
        raise ConfigError(
            f"{path.name} is not valid TOML: {message}",
            where=where,
            next_step="correct that line; texts stand in quotes, lists in brackets",
        ) from error


def _position(message: str, path: Path, text: str) -> tuple[str, str]:
    match = _POSITION.match(message)
    if match is None:
        return shown(message).strip('"'), str(path)
    body = text.rstrip("\n")
    line = match[2] or str(body.count("\n") + 1)
    column = match[3] or str(len(body) - (body.rfind("\n") + 1) + 1)
    what = shown(match[1]).strip('"')
    return what[:1].lower() + what[1:], f"{path}:{line}:{column}"


def read_blocks(document: Document) -> list[Block]:
    """The source blocks in order, disabled ones included. Raises ConfigError for the first mistake."""
    _check_table(document, (), document.data, TOP)
    blocks: list[Block] = []
    lines: dict[str, str] = {}
    for number, table in enumerate(document.data.get("sources", [])):
        _check_table(document, ("sources", number), table, SOURCE)
        block = _block(document, number, table)
        folded = block.name.casefold()
        if folded in lines:
            line = lines[folded].rpartition(":")[2]
            raise ConfigError(
                f"two sources are called {shown(block.name)}, the other on line {line}",
                where=document.at("sources", number, "name"),
                next_step="rename one of them; names that differ only in case count as one",
            )
        lines[folded] = document.at("sources", number, "name")
        blocks.append(block)
    return blocks


def read_policy(document: Document) -> str:
    """`[policy] uncategorized`: "review" or "index"."""
    table = document.data.get("policy", {})
    if not isinstance(table, dict):
        _wrong(document, ("policy",), "policy", "a table", table, "write it as [policy]")
    _check_table(document, ("policy",), table, POLICY)
    return str(table.get("uncategorized", "review"))


def _check_table(document: Document, address: Address, table: Mapping[str, Any], keys: Sequence[Key]) -> None:
    by_name = {key.name: key for key in keys}
    for name, value in table.items():
        if name not in by_name:
            inside = f"a [[{address[0]}]] block" if len(address) > 1 else f"[{address[0]}]" if address else "the file"
            raise ConfigError(
                f"{inside} has an unknown key {shown(name)}",
                where=document.at(*address, name),
                next_step=did_you_mean(name, by_name, f"known are {', '.join(by_name)}"),
            )
        _check_value(document, (*address, name), by_name[name], value)


def _check_value(document: Document, address: Address, key: Key, value: Any) -> None:
    if key.kind == "bool" and not isinstance(value, bool):
        _wrong(document, address, key.name, "true or false", value, "write true or false without quotes")
    if key.kind in {"text", "choice"} and not isinstance(value, str):
        _wrong(document, address, key.name, "a text", value, "put it in quotes")
    if key.kind == "choice" and value not in key.choices:
        raise ConfigError(
            f"{shown(key.name)} is {shown(value)}",
            where=document.at(*address),
            next_step=did_you_mean(value, key.choices, f"use one of {', '.join(key.choices)}"),
        )
    if key.kind == "globs":
        _check_globs(document, address, key.name, value)
    if key.kind == "tables" and not (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
        _wrong(document, address, key.name, "an array of tables", value, f"write [[{key.name}]], with two brackets")


def _wrong(document: Document, address: Address, name: str, wanted: str, value: Any, next_step: str) -> NoReturn:
    raise ConfigError(
        f"{shown(name)} must be {wanted}, not {_described(value)}", where=document.at(*address), next_step=next_step
    )


def _described(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    return f"the text {shown(value)}" if isinstance(value, str) else shown(str(value)).strip('"')


def _check_globs(document: Document, address: Address, name: str, value: Any) -> None:
    if not isinstance(value, list):
        _wrong(document, address, name, "a list of globs", value, f'write {name} = ["…"]')
    if len(value) > MOST_GLOBS:
        raise ConfigError(
            f"{shown(name)} has more than {MOST_GLOBS} globs", where=document.at(*address), next_step="combine some"
        )
    for number, glob in enumerate(value):
        at = (*address, number)
        if not isinstance(glob, str):
            _wrong(document, at, name, "a list of texts", glob, "put each glob in quotes")
        parts = glob.replace("\\", "/").split("/")
        shape = glob.strip() and glob.isprintable() and len(glob) <= LONGEST_GLOB
        if not shape or ".." in parts or not parts[0] or not _compiles(glob):
            raise ConfigError(
                f"{shown(name)} has a glob that cannot match: {shown(glob)}",
                where=document.at(*at),
                next_step="write it relative to the source's folder, like web/** or **/drafts",
            )


def _compiles(glob: str) -> bool:
    if "[" not in glob:  # nothing else in a glob can be wrong
        return True
    from pipeline.sources.globs import Globs

    try:
        Globs((glob,))
    except re.error:
        return False
    return True


def _block(document: Document, number: int, table: Mapping[str, Any]) -> Block:
    here = document.at("sources", number)
    name = table.get("name", "")
    if "name" not in table:
        raise ConfigError("a [[sources]] block has no name", where=here, next_step='add name = "…"')
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{shown(name)} cannot be the name of a source",
            where=document.at("sources", number, "name"),
            next_step="use letters, digits, dots, - and _, a letter or digit first, at most 64 characters",
        )
    kind = table.get("kind", "skills")
    if kind == "references":
        _refuse_of_skills(document, number, name, table)
    return Block(
        name=name,
        kind=kind,
        path=table.get("path", ""),
        enabled=table.get("enabled", True),
        state=table.get("state", ""),
        harness=table.get("harness", ""),
        group=table.get("group", ""),
        profiles=table.get("profiles", False),
        include=_globs(table.get("include", [])),
        exclude=_globs(table.get("exclude", [])),
        where=here,
        path_where=document.at("sources", number, "path"),
    )


def _refuse_of_skills(document: Document, number: int, name: str, table: Mapping[str, Any]) -> None:
    """References belong to no harness: a key that says they do would have no effect."""
    found = [key for key in ("state", "harness", "group", "profiles") if key in table]
    if found:
        raise ConfigError(
            f'source {shown(name)} is of kind "references" and has {", ".join(found)}, which only skills have',
            where=document.at("sources", number, found[0]),
            next_step=f'remove {", ".join(found)}, or set kind = "skills"',
        )


def _globs(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(value.replace("\\", "/").removeprefix("./") for value in values)
