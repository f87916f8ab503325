"""Looks variables up by the table, and finds the files and folders that they and the system name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from serve.config.files import folder_fault, is_file
from serve.config.paths import Expander, absolute, flavour
from serve.config.suggest import did_you_mean, shown
from serve.config.table import BY_NAME
from serve.config.values import ConfigWarning
from serve.config.variables import PREFIX, Value, Variable, parse
from serve.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from serve.config.env import Environment
    from serve.config.values import Machine

CONFIG_NAME = "sources.toml"
_FOLDER = "retrieval"  # below XDG_CONFIG_HOME and XDG_DATA_HOME


class Lookup(NamedTuple):
    """Reads variables out of layered environments. An empty value counts as unset."""

    environ: Environment
    machine: Machine

    def name_in_use(self, name: str) -> str:
        """The variable's own name or the alias that gives its value; "" when it is unset."""
        row = BY_NAME[name]
        return next((known for known in (name, *row.aliases) if self._text(row, known)), "")

    def _text(self, row: Variable, name: str) -> str:
        text = self.environ.get(name, "")
        return text if row.kind == "raw" else text.strip()

    def value(self, name: str) -> Value:
        """The parsed value, or the table's default. Not for paths."""
        row, used = BY_NAME[name], self.name_in_use(name)
        return parse(row, self.environ[used], self.environ.where(used)) if used else row.default

    def text(self, name: str) -> str:
        """A value that is text; "" when it has no default."""
        return str(self.value(name) or "")

    def number(self, name: str) -> float:
        """A value that is a number and has a default."""
        value = self.value(name)
        return value if isinstance(value, int | float) else 0.0

    def flag(self, name: str) -> bool:
        """A value that is true or false and has a default."""
        return bool(self.value(name))

    def command(self, name: str) -> str:
        """A program: the path when it looks like one, else its name; "" when unset."""
        text = self.text(name)
        return str(self.path(name)) if text.startswith(("~", "$")) or "/" in text or "\\" in text else text

    def path(self, name: str) -> Path | None:
        """A path made absolute: a relative one starts at its `.env` file, or at the current folder."""
        if not self.name_in_use(name):
            return None
        machine, where = self.machine, self.environ.where(name)
        text = Expander(self.environ, machine.home, machine.os_name, where).expand(self.environ[name].strip())
        base = str(self.environ.folder(name, machine.cwd))
        path = Path(absolute(text, base, machine.os_name, where))
        if name.startswith("XDG_") and not flavour(machine.os_name).isabs(text):
            # Their convention is to ignore it, which would put an index where nobody looks for it.
            raise ConfigError(f"{name} is relative: {shown(text)}", where=where, next_step="make it absolute")
        return path


def home_of(process: Mapping[str, str], os_name: str) -> str:
    """The home folder that an environment names, or else the system."""
    named = process.get("USERPROFILE" if os_name == "nt" else "HOME", "")
    if named:
        return named
    try:
        return str(Path.home())
    except RuntimeError as error:
        raise ConfigError("the home folder is unknown", where="environment", next_step="set HOME") from error


def config_folder(lookup: Lookup) -> Path:
    """The folder of this user's settings."""
    base = lookup.path("XDG_CONFIG_HOME") or Path(lookup.machine.home) / ".config"
    return base / _FOLDER


def settings_folder(lookup: Lookup) -> Path:
    """The folder of the `sources.toml` that RETRIEVAL_CONFIG names, else of this user's settings. Never the current one.

    Raises ConfigError when the file that is named is not there.
    """
    named = lookup.path("RETRIEVAL_CONFIG")
    return config_folder(lookup) if named is None else _existing(named, lookup.environ.where("RETRIEVAL_CONFIG")).parent


def find_config(explicit: str | Path | None, lookup: Lookup) -> Path | None:
    """The `sources.toml` in force: `--config`, RETRIEVAL_CONFIG, the current folder's, the user's. None: there is none.

    Raises ConfigError when one is named that is not there.
    """
    machine = lookup.machine
    if explicit is not None:
        path = machine.cwd / explicit
        if not is_file(path):  # a shell expands ~ and variables itself, unless they were quoted
            text = Expander(lookup.environ, machine.home, machine.os_name, "--config").expand(str(explicit))
            path = Path(absolute(text, str(machine.cwd), machine.os_name, "--config"))
        return _existing(path, "--config")
    named = lookup.path("RETRIEVAL_CONFIG")
    if named is not None:
        return _existing(named, lookup.environ.where("RETRIEVAL_CONFIG"))
    return next((path for path in config_places(lookup) if is_file(path)), None)


def config_places(lookup: Lookup) -> tuple[Path, Path]:
    """Where a configuration is looked for when none is named."""
    return lookup.machine.cwd / CONFIG_NAME, config_folder(lookup) / CONFIG_NAME


def _existing(path: Path, where: str) -> Path:
    if not is_file(path):
        raise ConfigError(
            f"there is no configuration file {path}",
            where=where,
            next_step="correct the path, or run `retrieval init` to make one",
        )
    return path


def data_folder(lookup: Lookup) -> Path:
    """The folder of everything generated; it need not exist yet. Raises ConfigError for one that cannot serve."""
    path = lookup.path("RETRIEVAL_HOME")
    where = lookup.environ.where("RETRIEVAL_HOME")
    if path is None:
        where = lookup.environ.where("XDG_DATA_HOME")
        path = (lookup.path("XDG_DATA_HOME") or Path(lookup.machine.home) / ".local" / "share") / _FOLDER
    if path in {Path(path.anchor), Path(lookup.machine.home)}:
        raise ConfigError(
            f"the data folder cannot be {path} itself", where=where, next_step="name a folder that Retrieval may fill"
        )
    fault = folder_fault(path)
    if fault not in {"", "does not exist"}:
        raise ConfigError(
            f"the data folder {path} {fault}", where=where, next_step="name another one in RETRIEVAL_HOME"
        )
    return path


def unknown_variables(environ: Environment) -> list[ConfigWarning]:
    """A warning for each variable that looks like one of ours and is none."""
    return [
        ConfigWarning(
            f"the variable {name} is unknown and has no effect",
            environ.where(name),
            did_you_mean(name, BY_NAME, "remove it, or see docs/configuration.md for the known ones", prefix=PREFIX),
        )
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in BY_NAME
    ]
