"""The table of every environment variable: one row drives reading, errors and the reference page alike."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, NoReturn

from pipeline.config.suggest import did_you_mean, shown
from pipeline.errors import ConfigError

Kind = Literal["text", "raw", "secret", "path", "url", "word", "choice", "bool", "int", "float"]
Value = str | int | float | bool | None

TRUE = frozenset({"true", "1", "yes", "on"})
FALSE = frozenset({"false", "0", "no", "off"})
PREFIX = "RETRIEVAL_"

_WORD = re.compile(r"[a-z0-9][a-z0-9_-]{0,38}")
_INT = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_URL = re.compile(r"https?://[^\s/?#@]+(?:[/?][^\s#]*)?")


class Variable(NamedTuple):
    """One row. default: None when leaving it out has a meaning of its own.

    kind "raw" keeps white space at its ends, "word" is lower-case letters, digits, - and _, "secret" is never shown.
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


FILES = (
    Variable(
        "RETRIEVAL_HOME",
        "path",
        "Folder of everything Retrieval generates.",
        otherwise="`retrieval` below the data folder",
    ),
    Variable("RETRIEVAL_CONFIG", "path", "The `sources.toml` to read.", otherwise="see above"),
    Variable(
        "RETRIEVAL_TAXONOMY",
        "path",
        "The category vocabulary.",
        otherwise="`taxonomy.toml` beside `sources.toml`, else the bundled one",
    ),
    Variable(
        "RETRIEVAL_CATEGORY_OVERRIDES",
        "path",
        "Your own category assignments.",
        otherwise="`category-overrides.toml` beside `sources.toml`",
    ),
)

VECTORS = (
    Variable(
        "RETRIEVAL_CHROMA_MODE",
        "choice",
        "`embedded` keeps Chroma's files on this machine; `server` and `cloud` reach one over HTTP.",
        "embedded",
        choices=("embedded", "server", "cloud"),
    ),
    Variable("RETRIEVAL_CHROMA_PATH", "path", "Folder of the embedded store.", otherwise="`chroma` in the data folder"),
    Variable(
        "RETRIEVAL_CHROMA_HOST",
        "text",
        "Host name of the server.",
        otherwise="`127.0.0.1`; in the cloud `api.trychroma.com`",
    ),
    Variable(
        "RETRIEVAL_CHROMA_PORT", "int", "Port of the server.", otherwise="`8000`; in the cloud `443`", low=1, high=65535
    ),
    Variable("RETRIEVAL_CHROMA_SSL", "bool", "Speak HTTPS to the server.", otherwise="`false`; in the cloud `true`"),
    Variable("RETRIEVAL_CHROMA_TOKEN", "secret", "Token of the server; the cloud needs one."),
    Variable("RETRIEVAL_CHROMA_TENANT", "text", "Tenant to use.", "", otherwise="the server's own default"),
    Variable("RETRIEVAL_CHROMA_DATABASE", "text", "Database to use.", "", otherwise="the server's own default"),
    Variable(
        "RETRIEVAL_NAMESPACE",
        "word",
        "First part of the collections' names, to tell them apart on a server.",
        "retrieval",
    ),
)

EMBEDDING = (
    Variable(
        "RETRIEVAL_EMBEDDER",
        "choice",
        "`builtin` is all-MiniLM-L6-v2, which comes with the installation; `fastembed` loads any of its models by "
        "name; `endpoint` asks an OpenAI-compatible server.",
        "builtin",
        choices=("builtin", "fastembed", "endpoint"),
    ),
    Variable(
        "RETRIEVAL_EMBEDDING_MODEL",
        "text",
        "Model of `fastembed` or of the endpoint, which needs it.",
        otherwise="for `fastembed` `sentence-transformers/all-MiniLM-L6-v2`",
        aliases=("EMBEDDING_MODEL",),
    ),
    Variable(
        "RETRIEVAL_EMBEDDING_URL",
        "url",
        "Address of the endpoint, such as `http://127.0.0.1:8080/v1` or the same with `/embeddings`.",
        aliases=("EMBEDDING_URL",),
    ),
    Variable("RETRIEVAL_EMBEDDING_API_KEY", "secret", "Key for the endpoint.", aliases=("EMBEDDING_API_KEY",)),
    Variable("RETRIEVAL_EMBEDDING_BATCH", "int", "Texts embedded at once.", 32, low=1, high=2048),
    Variable(
        "RETRIEVAL_EMBEDDING_TIMEOUT",
        "float",
        "Seconds until a request to the endpoint is given up.",
        60.0,
        low=0.1,
        high=3600,
    ),
    Variable("RETRIEVAL_EMBEDDING_RETRIES", "int", "Further attempts after a failed request.", 3, low=0, high=20),
    Variable(
        "RETRIEVAL_EMBEDDING_QUERY_PREFIX",
        "raw",
        "Text put before each query. White space counts: quote it in `.env`.",
        "",
    ),
    Variable("RETRIEVAL_EMBEDDING_PASSAGE_PREFIX", "raw", "Text put before each skill's text. White space counts.", ""),
    Variable(
        "RETRIEVAL_FASTEMBED_CACHE", "path", "Where fastembed keeps its models.", otherwise="fastembed's own choice"
    ),
)

LIMITS = (
    Variable("RETRIEVAL_LOCK_TIMEOUT", "float", "Seconds to wait for another run to end.", 30.0, low=0, high=86400),
    Variable(
        "RETRIEVAL_MAX_SKILL_BYTES",
        "int",
        "Largest `SKILL.md`, in bytes; a larger one is reported.",
        4 << 20,
        low=1024,
        high=1 << 28,
    ),
)

PROGRAMS = (Variable("RETRIEVAL_IWE_COMMAND", "text", "The `iwe` program.", otherwise="the one on `PATH`"),)

SCRIPTS = (
    Variable(
        "RETRIEVAL_PYTHON", "text", "The Python that `setup.sh` and `test.sh` use.", otherwise="the newest that fits"
    ),
    Variable("RETRIEVAL_KILL_AT", "text", "For crash tests: `point:n` kills a build at that point.", otherwise="never"),
)

OTHERS = (
    Variable(
        "HERMES_HOME",
        "path",
        "The Hermes home, or one of its profiles.",
        otherwise="`~/.hermes`; on Windows `%LOCALAPPDATA%\\hermes`",
    ),
    Variable("XDG_DATA_HOME", "path", "Folder for programs' data.", otherwise="`~/.local/share`"),
    Variable("XDG_CONFIG_HOME", "path", "Folder for programs' settings.", otherwise="`~/.config`"),
)

GROUPS: tuple[tuple[str, tuple[Variable, ...]], ...] = (
    ("Files and folders", FILES),
    ("Vector store", VECTORS),
    ("Embedding", EMBEDDING),
    ("Limits", LIMITS),
    ("Programs", PROGRAMS),
    ("Scripts and tests", SCRIPTS),
    ("Read from the system", OTHERS),
)
BY_NAME: dict[str, Variable] = {row.name: row for _, rows in GROUPS for row in rows}


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
