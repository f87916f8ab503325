"""Whatever ends a command too early, as the one kind of error that is shown: what happened, where, what to do next."""

from __future__ import annotations

import errno
import os
import sys

from serve.errors import ExitCode, OperatorError

_REMEDIES = {
    errno.ENOSPC: "free some space and run it again",
    errno.EDQUOT: "free some space and run it again",
    errno.EACCES: "give this user the right to it, or name another folder with RETRIEVAL_HOME",
    errno.EPERM: "give this user the right to it, or name another folder with RETRIEVAL_HOME",
    errno.EROFS: "name a folder that can be written to with RETRIEVAL_HOME",
}


def explained(error: BaseException) -> OperatorError | None:
    """The error to show for an exception, or None for a fault of the program itself."""
    if isinstance(error, OperatorError):
        return error
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return OperatorError(
            "interrupted", next_step="run it again: what was finished is kept", code=ExitCode.INTERRUPTED
        )
    if isinstance(error, OSError):
        return _system(error)
    if type(error).__module__ == "sqlite3":
        return OperatorError(f"a database cannot be used: {error}", next_step="run `retrieval doctor`")
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        return _usage(error)
    return None


def fault(error: BaseException) -> OperatorError:
    """What is said of a fault of the program, below its traceback."""
    lines = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return OperatorError(
        f"a fault in Retrieval itself: {what}",
        next_step="run `retrieval doctor`; report the fault if that finds nothing",
    )


def _system(error: OSError) -> OperatorError:
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return OperatorError(
        f"the system refused: {reason}",
        where=where,
        next_step=_REMEDIES.get(error.errno or 0, "run `retrieval doctor`"),
    )


def _usage(error: BaseException) -> OperatorError:
    """A mistake on the command line, as Typer's parser raises it."""
    message = str(error.format_message()).strip().rstrip(".")  # type: ignore[attr-defined]  # told apart by what it has
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "retrieval"
    return OperatorError(
        message[:1].lower() + message[1:], where=command, next_step=f"run `{command} --help`", code=ExitCode.USAGE
    )


def open_streams() -> None:
    """Give a process that was started without standard streams some to write to."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - held for the whole process
