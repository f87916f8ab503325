"""Layers the real environment over `.env` files and remembers where each value stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from serve.config.files import is_file, read_text
from serve.config.suggest import shown
from serve.config.values import ConfigWarning
from serve.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 256 * 1024  # bytes of a .env file
LONGEST_LINE = 8192  # characters: the parser's time grows with the square of a line's white space
LONGEST_VALUE = 32_768  # characters after filling in ${...}

OURS = ("RETRIEVAL_", "EMBEDDING_", "HERMES_HOME")  # a broken line that mentions one of these is an error


class Entry(NamedTuple):
    """One line of a `.env` file. fault: why it has no usable value, told when somebody asks for it."""

    value: str
    line: int
    fault: str = ""


class EnvFile(NamedTuple):
    """What one `.env` file says."""

    path: Path
    entries: Mapping[str, Entry]
    warnings: tuple[ConfigWarning, ...] = ()


class Environment(Mapping[str, str]):
    """The real environment first, then each file in the given order. Reading changes nothing outside.

    An empty value counts as unset where a variable is read, so that a line may be left in place without one.
    options: variables of `real` that an option of the command line set, with that option's name.
    """

    def __init__(
        self, real: Mapping[str, str], files: tuple[EnvFile, ...] = (), options: Mapping[str, str] | None = None
    ) -> None:
        self.real = real
        self.files = files
        self.options = options or {}

    def __getitem__(self, name: str) -> str:
        """The value in force. Raises ConfigError when its line cannot be filled in."""
        if name in self.real:
            return self.real[name]
        for file in self.files:
            entry = file.entries.get(name)
            if entry is not None:
                if entry.fault:
                    raise ConfigError(
                        f"{name} cannot be read: {entry.fault}",
                        where=f"{file.path}:{entry.line}",
                        next_step="set that variable, or quote the value with single quotes to keep it as it is",
                    )
                return entry.value
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        """Whether it is set anywhere, readable or not."""
        return name in self.real or any(name in file.entries for file in self.files)

    def __iter__(self) -> Iterator[str]:
        """Every name once."""
        seen = dict.fromkeys(self.real)
        for file in self.files:
            seen.update(dict.fromkeys(file.entries))
        return iter(seen)

    def __len__(self) -> int:
        """How many names are set."""
        return sum(1 for _ in self)

    def where(self, name: str) -> str:
        """Where a variable gets its value: an option, its name, or file:line."""
        if name in self.options:
            return self.options[name]
        if name not in self.real:
            for file in self.files:
                if name in file.entries:
                    return f"{file.path}:{file.entries[name].line}"
        return f"environment variable {name}"

    def folder(self, name: str, cwd: Path) -> Path:
        """What a relative path in a variable is relative to: its file's folder, or the current one."""
        if name not in self.real:
            for file in self.files:
                if name in file.entries:
                    return file.path.parent
        return cwd


def read_env_file(path: Path, real: Mapping[str, str]) -> EnvFile | None:
    """What the `.env` file at `path` says; None without one. `${NAME}` is `real`'s value, else an earlier line's.

    `export`, quotes and comments are understood as python-dotenv does; single quotes keep a value as it is.
    Raises ConfigError when the file, or a line of it that concerns Retrieval, cannot be read.
    """
    if not is_file(path):  # a folder called .env is somebody's virtual environment
        return None
    text = _text(path)
    from io import StringIO  # with the next line

    from dotenv.parser import parse_stream  # costs 12 ms and is needed when there is a file only

    entries: dict[str, Entry] = {}
    warnings: list[ConfigWarning] = []
    for binding in parse_stream(StringIO(text)):
        source = binding.original.string
        start = source.lstrip()
        line = binding.original.line + source[: len(source) - len(start)].count("\n")
        if binding.error or (binding.key is not None and binding.value is None):
            warnings.append(_broken(path, line, start))
        elif binding.key is not None and binding.value is not None:
            literal = start.partition("=")[2].lstrip().startswith("'")
            value, fault = (binding.value, "") if literal else _fill(binding.value, entries, real)
            entries[binding.key] = Entry(value, line, fault)
    return EnvFile(path, entries, tuple(warnings))


def _text(path: Path) -> str:
    text = read_text(path, LARGEST, ".env")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            raise ConfigError(
                f"a line of .env is longer than {LONGEST_LINE} characters",
                where=f"{path}:{number}",
                next_step="shorten it",
            )
    return text


def _broken(path: Path, line: int, text: str) -> ConfigWarning:
    first = text.split("\n", 1)[0].rstrip()
    name = shown(first.partition("=")[0].strip() + " …" if "=" in first else first)  # a value may be secret
    what, where = f"a line of .env cannot be read: {name}", f"{path}:{line}"
    next_step = "write NAME=value, and close its quotes"
    if any(mark in first for mark in OURS):
        raise ConfigError(what, where=where, next_step=next_step)
    return ConfigWarning(what, where, next_step)


def _fill(value: str, earlier: Mapping[str, Entry], real: Mapping[str, str]) -> tuple[str, str]:
    """The value with `${NAME}` and `${NAME:-default}` filled in, and the reason when that is impossible."""
    if "${" not in value:
        return value, ""
    from dotenv.variables import Literal, Variable, parse_variables  # see read_env_file

    filled = ""
    for atom in parse_variables(value):
        if isinstance(atom, Literal):
            filled += atom.value
        elif isinstance(atom, Variable):
            known = earlier.get(atom.name)
            if atom.name in real:
                filled += real[atom.name]
            elif known is not None and known.fault:
                return "", known.fault
            elif known is not None:
                filled += known.value
            elif atom.default is not None:
                filled += atom.default
            else:
                return "", f"it uses {shown(atom.name)}, which is not set"
        if len(filled) > LONGEST_VALUE:
            return "", "it is too long once its variables are filled in"
    return filled, ""
