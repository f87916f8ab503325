"""What an answering process is told from outside: which harness asks, who chooses, and the bounds of an answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from serve.config.embedding import embedder_config, embedding_settings
from serve.config.env import Environment, read_env_file
from serve.config.lookup import Lookup, data_folder, home_of, settings_folder, unknown_variables
from serve.config.paths import absolute
from serve.config.values import ConfigWarning, Machine
from serve.embedder import EmbedderConfig

# Options of `python -m serve` and the variables that they stand for.
OPTIONS = {"RETRIEVAL_HARNESS": "--harness", "RETRIEVAL_SELECTOR": "--selector", "RETRIEVAL_HOME": "--data-dir"}


@dataclass(frozen=True)
class ScoutSettings:
    """How the model that chooses is reached.

    selector: "auto" (omp where it is set up, else rank), "omp", "endpoint" or "rank". timeout: seconds a choice may take
    from its first to its last step. omp_command: "" for the program on PATH. model: for omp "provider/model", for an
    endpoint its model's name. models_file: an OMP models.yml to give the scout. url, api_key: an OpenAI-compatible
    chat endpoint; with selector "omp" a models.yml is made from them. pass_variables: names of environment variables
    that the scout may see beside the fixed few. standby: keep one started scout ready.
    """

    selector: str = "auto"
    timeout: float = 25.0
    omp_command: str = ""
    model: str = ""
    models_file: Path | None = None
    url: str = ""
    api_key: str = field(default="", repr=False)
    pass_variables: tuple[str, ...] = ()
    standby: bool = True


@dataclass(frozen=True)
class Bounds:
    """answer_chars: the most characters of a SKILL.md in an answer. project_files, project_bytes: the largest package
    that is projected. usage_rows: the most queries the usage record keeps.
    """

    answer_chars: int = 200_000
    project_files: int = 1_000
    project_bytes: int = 64 << 20
    usage_rows: int = 20_000


@dataclass(frozen=True)
class ServeSettings:
    """harness: one of `serve.harnesses`, or "" for a caller of no known harness, for which nothing is projected.

    chroma_token: for a Chroma server. iwec_command: "" for the program on PATH, "off" for no IWE lane. iwe_budget:
    seconds the IWE lane may take of a query. usage: whether queries are recorded.
    """

    data_dir: Path
    harness: str = ""
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    chroma_token: str = field(default="", repr=False)
    scout: ScoutSettings = field(default_factory=ScoutSettings)
    bounds: Bounds = field(default_factory=Bounds)
    iwec_command: str = ""
    iwe_budget: float = 0.03
    usage: bool = True
    http_token: str = field(default="", repr=False)


class Reading(NamedTuple):
    """What was read. passed_on: what the variables hold that the scout may see, wherever they are set."""

    settings: ServeSettings
    warnings: tuple[ConfigWarning, ...]
    passed_on: dict[str, str]


def load(environ: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None) -> ServeSettings:
    """The settings of an answering process; see `read`."""
    return read(environ, options).settings


def read(environ: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None) -> Reading:
    """Reads the environment over the `.env` in the user's folder of settings. Nothing of the current folder is read.

    A harness starts this process in whatever project it works in, and that project's files are not the user's own word.
    environ: this process's own when left out; it is not changed. options: values for variables of `OPTIONS`, which win.
    Raises ConfigError.
    """
    process = {**(os.environ if environ is None else environ), **(options or {})}
    named = {name: OPTIONS[name] for name in options or {}}
    home = absolute(home_of(process, os.name), "/", os.name, "home folder")
    here = _current_folder(home)
    lookup = _lookup(Environment(process, (), named), home, here)
    file = read_env_file(settings_folder(lookup) / ".env", process)
    if file is not None:
        lookup = _lookup(Environment(process, (file,), named), home, here)
    settings = from_lookup(lookup)
    warnings = (*(file.warnings if file else ()), *unknown_variables(lookup.environ))
    return Reading(settings, warnings, passed_on(lookup, settings))


def from_lookup(lookup: Lookup) -> ServeSettings:
    """The settings that variables give. Raises ConfigError."""
    data_dir = data_folder(lookup)
    return ServeSettings(
        data_dir=data_dir,
        harness=lookup.text("RETRIEVAL_HARNESS"),
        embedder=embedder_config(embedding_settings(lookup), data_dir),
        chroma_token=lookup.text("RETRIEVAL_CHROMA_TOKEN"),
        scout=_scout(lookup),
        bounds=Bounds(
            answer_chars=int(lookup.number("RETRIEVAL_MAX_ANSWER_CHARS")),
            project_files=int(lookup.number("RETRIEVAL_PROJECT_MAX_FILES")),
            project_bytes=int(lookup.number("RETRIEVAL_PROJECT_MAX_BYTES")),
            usage_rows=int(lookup.number("RETRIEVAL_USAGE_ROWS")),
        ),
        iwec_command=lookup.command("RETRIEVAL_IWEC_COMMAND"),
        iwe_budget=lookup.number("RETRIEVAL_IWE_BUDGET"),
        usage=lookup.flag("RETRIEVAL_USAGE"),
        http_token=lookup.text("RETRIEVAL_HTTP_TOKEN"),
    )


def passed_on(lookup: Lookup, settings: ServeSettings) -> dict[str, str]:
    """What the variables hold that the scout may see; those that are not set are left out."""
    return {name: lookup.environ[name] for name in settings.scout.pass_variables if name in lookup.environ}


def _scout(lookup: Lookup) -> ScoutSettings:
    names = lookup.text("RETRIEVAL_SCOUT_VARIABLES")
    return ScoutSettings(
        selector=lookup.text("RETRIEVAL_SELECTOR"),
        timeout=lookup.number("RETRIEVAL_SCOUT_TIMEOUT"),
        omp_command=lookup.command("RETRIEVAL_OMP_COMMAND"),
        model=lookup.text("RETRIEVAL_SCOUT_MODEL"),
        models_file=lookup.path("RETRIEVAL_SCOUT_MODELS"),
        url=lookup.text("RETRIEVAL_SCOUT_URL"),
        api_key=lookup.text("RETRIEVAL_SCOUT_API_KEY"),
        pass_variables=tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip())),
        standby=lookup.flag("RETRIEVAL_SCOUT_STANDBY"),
    )


def _lookup(environ: Environment, home: str, here: Path) -> Lookup:
    return Lookup(environ, Machine(environ, home, here, os.name))


def _current_folder(home: str) -> Path:
    """The current folder, for relative paths in variables. One that is gone must not keep a server from starting."""
    try:
        return Path.cwd()
    except OSError:
        return Path(home)
