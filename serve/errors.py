"""Errors a person can act on, and the exit codes that go with them.

Every failure a user may cause or mend is an `OperatorError`: what happened, where, and what to do next.
The building side adds its own in `pipeline.errors`; one place per program prints them and exits.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means. Documented API: numbers never change meaning."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PROBLEMS = 3
    UNREACHABLE = 4
    LOCKED = 5
    CONTRACT = 6
    INTERRUPTED = 130


class OperatorError(Exception):
    """A failure with its remedy.

    what: one sentence, lower-case start, no final full stop.
    where: a path, `path:line`, URL or ID; empty when there is no place to point at.
    next_step: what the reader should do now; empty only when nothing can be done.
    """

    code: ExitCode = ExitCode.FAILED

    def __init__(self, what: str, *, where: str = "", next_step: str = "", code: ExitCode | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.next_step = next_step
        if code is not None:
            self.code = code

    def as_dict(self) -> dict[str, object]:
        """The error as `--json` prints it."""
        return {
            "error": self.what,
            "where": self.where,
            "next": self.next_step,
            "code": int(self.code),
        }

    def __str__(self) -> str:
        lines = [f"error: {self.what}"]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.next_step:
            lines.append(f"  next: {self.next_step}")
        return "\n".join(lines)


class ConfigError(OperatorError):
    """A setting, a configuration file or a command's argument that cannot be used as it stands."""

    code = ExitCode.USAGE


class NoIndexError(OperatorError):
    """Nothing has been published in this data directory yet."""


class ContractError(OperatorError):
    """The published snapshot or its embedder does not fit this program."""

    code = ExitCode.CONTRACT


class EmbedderError(OperatorError):
    """The embedder cannot be loaded or gave something other than the promised vectors."""


class UnreachableError(OperatorError):
    """A configured service does not answer."""

    code = ExitCode.UNREACHABLE
