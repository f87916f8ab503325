"""The values that a loaded configuration is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class ConfigWarning:
    """Something in the configuration that works, but surely not as meant. Fields as in `OperatorError`."""

    what: str
    where: str = ""
    next_step: str = ""

    def as_dict(self) -> dict[str, str]:
        """The warning as `--json` prints it."""
        return {"warning": self.what, "where": self.where, "next": self.next_step}

    def __str__(self) -> str:
        """The warning as a terminal shows it."""
        lines = [f"warning: {self.what}"]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.next_step:
            lines.append(f"  next: {self.next_step}")
        return "\n".join(lines)


class Machine(NamedTuple):
    """What a configuration is read on. environ: with `.env` files in it. os_name: as `os.name` has it."""

    environ: Mapping[str, str]
    home: str
    cwd: Path
    os_name: str


@dataclass(frozen=True)
class Source:
    """One folder to read. A Hermes home with its profiles is several of them.

    name: unique, folder-safe. declared: the name of the `[[sources]]` block it came from. path: absolute, links not
    resolved. state: native, hidden, cold or archived. harness: whose tree it is, "" for a plain library. group: sources
    of one group share their names, the earlier one wins; "" when the source stands alone. include, exclude: globs
    relative to `path`, "/"-separated. available: the folder was there when the configuration was read. where: file:line
    of the block. enabled: a source that is not is listed and otherwise left alone; its path may hold variables.
    """

    name: str
    path: Path
    kind: str = "skills"
    state: str = "cold"
    harness: str = ""
    group: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    declared: str = ""
    enabled: bool = True
    available: bool = True
    where: str = ""


@dataclass(frozen=True)
class ChromaSettings:
    """How the vector store is reached. mode: embedded (files at `path`), server, or cloud."""

    mode: str
    host: str
    port: int
    ssl: bool
    token: str = field(repr=False)
    tenant: str
    database: str
    path: Path
    namespace: str


@dataclass(frozen=True)
class EmbeddingSettings:
    """Which embedder makes the vectors. kind: builtin, fastembed or endpoint.

    batch: texts per call. timeout: seconds per request. retries: further attempts after a failed one. cache: where
    fastembed keeps downloaded models; None leaves that to fastembed.
    """

    kind: str
    model: str
    url: str
    api_key: str = field(repr=False)
    batch: int
    timeout: float
    retries: int
    query_prefix: str
    passage_prefix: str
    cache: Path | None


@dataclass(frozen=True)
class Limits:
    """Sizes above which a skill is reported instead of read. skill_bytes: of the SKILL.md."""

    skill_bytes: int
