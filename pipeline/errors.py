"""The building side's errors. Each says what happened, where, and what to do next; `serve.errors` has the base."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.config.suggest import shown
from serve.errors import ConfigError, ExitCode, OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["BuildError", "ConfigError", "ExitCode", "LockedError", "OperatorError", "UnknownSourceError"]


class UnknownSourceError(ConfigError):
    """A source was asked for by a name that the configuration does not have."""


class BuildError(OperatorError):
    """A build that could not be completed."""


class LockedError(OperatorError):
    """Another run writes to the same data directory.

    path: the lock file. holder: what the other run wrote down (pid, command, since), {} for nothing. waited: seconds.
    """

    code = ExitCode.LOCKED

    def __init__(self, path: Path, holder: Mapping[str, object], waited: float = 0.0) -> None:
        pid, command = holder.get("pid"), holder.get("command")
        who = f"process {pid}" + (f" ({shown(command)})" if command else "") if pid else "a process that left no name"
        after = f" after {waited:g} s of waiting" if waited else ""
        super().__init__(
            f"another run still writes to this data directory{after}: {who}",
            where=str(path),
            next_step="wait until it ends, or give RETRIEVAL_LOCK_TIMEOUT more seconds",
        )
        self.holder = dict(holder)
        self.waited = waited

    def as_dict(self) -> dict[str, object]:
        """The error as `--json` prints it, with the holder in a field of its own."""
        return {**super().as_dict(), "holder": self.holder}
