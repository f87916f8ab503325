"""The operator's command line. Commands import what they need when they run, so that help costs nothing."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code.

    A command is over before cyclic garbage could matter, and looking for it among a library's rows takes longer than some commands.
    """
    gc.disable()
    code = run(sys.argv[1:] if arguments is None else arguments)
    gc.freeze()  # nor is anything to be looked for on the way out
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. The one place that prints errors."""
    from pipeline.cli import failures, output

    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    stream = "--stdin" in options
    as_json = stream or "--json" in options
    failures.open_streams()
    try:
        code = _command(list(arguments))
        output.flush()
    except BaseException as error:
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        shown = failures.explained(error)
        if shown is None:
            output.trace(error)
            shown = failures.fault(error)
        output.complain(shown, as_json=as_json, one_line=stream)
        output.flush()
        return int(shown.code)
    return code


def _command(words: list[str]) -> int:
    from serve.errors import ExitCode, OperatorError

    try:
        import typer
    except ModuleNotFoundError as error:
        raise OperatorError(
            "the command line needs the building side, which is not installed",
            where=sys.prefix,
            next_step="install `retrieval[build]`",
            code=ExitCode.USAGE,
        ) from error
    from pipeline.cli.app import app

    result = app(words, standalone_mode=False, prog_name="retrieval")
    if result == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt  # which Typer had turned into a mere number
    return result if isinstance(result, int) else 0
