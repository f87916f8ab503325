"""The values that a loaded configuration is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from serve.config.embedding import EmbeddingSettings
from serve.config.values import ConfigWarning, Machine

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ChromaSettings", "ConfigWarning", "EmbeddingSettings", "Limits", "Machine", "Source"]


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
class Limits:
    """Sizes above which a skill is reported instead of read. skill_bytes: of the SKILL.md."""

    skill_bytes: int
