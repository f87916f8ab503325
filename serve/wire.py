"""Keeps standard input and output for the protocol alone, from before anything is imported that might print.

Also what is read there: lines of bounded length, and what is wrong with one that is no message.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from serve.errors import OperatorError

LONGEST = 4 << 20  # bytes of a line; a query has at most 20,000 characters
PARSE_ERROR, INVALID_REQUEST = -32700, -32600  # of JSON-RPC
_ENDS = 512  # bytes at either end of a line that is too long in which its id is looked for
_PIECE = 1 << 16
_MOST_OF_A_BATCH = 100  # errors that one line can call forth
_SURROGATE = re.compile("[\ud800-\udfff]")
_ID = rb'"id"\s*:\s*(-?(?:0|[1-9]\d{0,19})|"[^"\\\x00-\x1f]{1,100}")'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,100}"\s*,\s*)*' + _ID + rb"\s*,")
_ID_LAST = re.compile(rb"[{,]\s*" + _ID + rb"\s*\}\s*\Z")


class Fault(NamedTuple):
    """Why something that came is no message. number: the id of the request, None when it cannot be told."""

    code: int
    what: str
    number: str | int | float | None = None


def open_errors() -> None:
    """Give a process that was started without standard error one that leads nowhere, before another file takes its number."""
    try:
        os.fstat(2)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != 2:
            os.dup2(nowhere, 2)
            os.close(nowhere)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - held for the whole process


def divert() -> tuple[int, int]:
    """Take the client's ends out of harm's way: a stray print goes to standard error, a child reads nothing.

    Returns the descriptors that carry the protocol, input and output. Raises OperatorError when there are none.
    """
    try:
        os.fstat(0), os.fstat(1)  # before a duplicate takes the number of one that is closed
        wire_in, wire_out = os.dup(0), os.dup(1)
    except OSError as error:
        raise OperatorError(
            "standard input or output is closed, and they carry the protocol",
            next_step="let an MCP client start this program, or use --http",
        ) from error
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return wire_in, wire_out


def lines(file: io.BufferedIOBase) -> Iterator[str | Fault]:
    """The lines of a client; a fault in place of one that is too long, of which no more than the bound is ever held."""
    while line := file.readline(LONGEST + 1):
        if len(line) <= LONGEST or line.endswith(b"\n"):
            yield line.decode("utf-8", "replace")
            continue
        tail = line
        while not tail.endswith(b"\n") and (more := file.readline(_PIECE)):
            tail = tail[-_ENDS:] + more
        yield Fault(INVALID_REQUEST, f"a line has more than {LONGEST} bytes", _id_at_an_end(line, tail))


def mended(line: str) -> str | None:
    """A line that could not be read with each half of a surrogate pair made U+FFFD, None when it has none.

    That half is what a text cut in the middle of an emoji ends with; JSON can hold it and UTF-8 cannot.
    """
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    better = _SURROGATE.sub("\ufffd", text)
    return None if better == text else better


def faults(line: str) -> list[Fault]:
    """What to answer to a line that is no message: nothing to a blank one, a notification or an answer."""
    if not line.strip():
        return []
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return [Fault(PARSE_ERROR, "a line is not JSON")]
    if isinstance(given, list):
        numbers = [item["id"] for item in given if isinstance(item, dict) and "method" in item and "id" in item]
        if not 0 < len(numbers) <= _MOST_OF_A_BATCH:
            numbers = [None]
        return [Fault(INVALID_REQUEST, "send each message of a batch by itself", _readable(each)) for each in numbers]
    if not isinstance(given, dict):
        return [Fault(INVALID_REQUEST, "a message is a JSON object")]
    if ("method" in given and "id" not in given) or given.keys() & {"result", "error"}:
        return []
    what = "this is no request of JSON-RPC 2.0: it needs `jsonrpc`, a `method`, an `id` that is text or a whole number"
    return [Fault(INVALID_REQUEST, what, _readable(given.get("id")))]


def _id_at_an_end(head: bytes, tail: bytes) -> str | int | None:
    """The id of a request that was not read as a whole, where libraries put it: in front, or as the last of the object."""
    found = _ID_FIRST.match(head[:_ENDS]) or _ID_LAST.search(tail[-_ENDS:])
    if found is None:
        return None
    number: str | int = json.loads(found[1].decode("utf-8", "replace"))
    return number


def _readable(number: Any) -> str | int | float | None:
    """An id that can be sent back."""
    if isinstance(number, bool) or not isinstance(number, str | int | float):
        return None
    if isinstance(number, str):
        return _SURROGATE.sub("\ufffd", number)
    return number if abs(number) < float("inf") else None
