"""The operator's command line. Commands import what they need when they run, so that help costs nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code. The one place that prints errors and exits."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        import typer
    except ModuleNotFoundError:
        sys.stderr.write(
            "error: the command line needs the building side, which is not installed\n"
            "  at this Python environment\n"
            "  next: install `retrieval[build]`\n"
        )
        sys.exit(2)
    sys.exit(_run(typer, words))


def _run(typer: object, words: list[str]) -> int:
    from pipeline.cli import output
    from pipeline.cli.app import app
    from serve.errors import ExitCode, OperatorError

    as_json = "--json" in words
    try:
        result = app(words, standalone_mode=False, prog_name="retrieval")
    except OperatorError as error:
        output.complain(error, as_json=as_json)
        return int(error.code)
    except (KeyboardInterrupt, typer.Abort):  # type: ignore[attr-defined]  # passed in, to be imported once
        sys.stderr.write("interrupted\n")
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; nobody is left to be told
        return int(ExitCode.OK)
    except Exception as error:
        # Usage errors of the command line know how to show themselves; everything else is a fault worth its traceback.
        if not hasattr(error, "show") or not hasattr(error, "exit_code"):
            raise
        if as_json:
            message = getattr(error, "format_message", lambda: str(error))()
            usage = OperatorError(message, next_step="run `retrieval --help`", code=ExitCode.USAGE)
            output.complain(usage, as_json=True)
        else:
            error.show()
        return int(error.exit_code)
    return int(result) if isinstance(result, int) else 0
