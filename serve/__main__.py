"""`python -m serve`: the MCP server that a harness starts. Nothing but the protocol goes to standard output."""

from __future__ import annotations

import gc
import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
USAGE = """\
usage: python -m serve [--harness NAME] [--selector NAME] [--data-dir FOLDER] [--http [HOST:]PORT]

Serves retrieve_skill and retrieve_reference over MCP on standard input and output.
  --harness NAME       the harness that calls: hermes, omp, claude, codex, opencode or gemini
  --selector NAME      who chooses: auto, omp, endpoint or rank
  --data-dir FOLDER    where the index is
  --http [HOST:]PORT   serve over HTTP on this machine instead, to clients that send RETRIEVAL_HTTP_TOKEN
These and all other settings are variables: docs/configuration.md. A `.env` file beside the configuration is read, one
in the current folder is not.
"""


def main(arguments: list[str]) -> int:
    """Serve until the client ends it. Returns the exit code."""
    _distrust_current_folder()
    # Importing makes no garbage that is worth looking for, and looking for it takes a tenth of the start.
    gc.disable()
    from serve.errors import OperatorError
    from serve.wire import open_errors

    open_errors()
    try:
        return _run(arguments)
    except OperatorError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.code)


def _run(words: list[str]) -> int:
    from serve.command import parsed

    wanted = parsed(words)
    if wanted.help:
        sys.stdout.write(USAGE)
        sys.stdout.flush()
        return 0
    if wanted.http is not None:
        from serve.http import serve as serve_http

        return serve_http(wanted)
    from serve.wire import divert

    wire = divert()
    from serve.command import start
    from serve.stdio import serve

    backend, server = start(wanted)
    gc.freeze()
    gc.enable()
    code = serve(server, wire)
    backend.close()
    return code


def _distrust_current_folder() -> None:
    """With `-m` Python looks for modules in the current folder first, which is whatever project the harness works in."""
    if not sys.flags.safe_path and sys.path and os.path.abspath(sys.path[0]) != _ROOT:
        del sys.path[0]


if __name__ == "__main__":
    _code = main(sys.argv[1:])
    sys.stderr.flush()
    # At once: a thread may be blocked in reading, or busy loading a model that nobody needs any more.
    os._exit(_code)
