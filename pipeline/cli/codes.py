"""The exit codes in words, for the help, the documentation and whoever asks in a script."""

from __future__ import annotations

from serve.errors import ExitCode

MEANINGS = {
    ExitCode.OK: "done, or already current",
    ExitCode.FAILED: "failed, or a check found something wrong",
    ExitCode.USAGE: "the command line or the configuration is wrong",
    ExitCode.PROBLEMS: "done, with problems, warnings or skills waiting for review",
    ExitCode.UNREACHABLE: "a service does not answer",
    ExitCode.LOCKED: "another run holds the lock",
    ExitCode.CONTRACT: "the index does not fit this version of the program",
    ExitCode.INTERRUPTED: "interrupted",
}


def listed() -> str:
    """One line a code, for the end of the help."""
    return "\n".join(f"  {int(code):>3}  {meaning}" for code, meaning in MEANINGS.items())
