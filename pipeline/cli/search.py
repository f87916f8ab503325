"""`retrieval search`: one query, or a stream of them."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.cli import output
from pipeline.cli.common import settings
from pipeline.config.keys import HARNESSES
from serve.errors import ExitCode, NoIndexError, OperatorError
from serve.threads import quiet_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.settings import Settings
    from serve.query import Query
    from serve.search import Answer, Searcher

_LONGEST_LINE = 1 << 20  # bytes of a line of --stdin; a query has at most 20,000 characters
_SHOWN = 198  # characters of a description
_BEGIN = "run `retrieval init`, then `retrieval build`"


class Filters(NamedTuple):
    """What the options ask for beside the words."""

    limit: int
    source: tuple[str, ...]
    category: tuple[str, ...]
    state: tuple[str, ...]
    harness: str


def search(query: str, filters: Filters, config: str, *, explain: bool, stdin: bool, as_json: bool) -> int:
    """Answer one query, or with stdin each line in its order. Returns the exit code."""
    quiet_threads()
    if stdin and query:
        raise _unusable("a query and --stdin exclude each other", "give one of the two")
    chosen = settings(config, with_sources=False)
    _check_harness(filters.harness)
    with _searching(chosen) as searcher:
        if stdin:
            return _stream(searcher, filters, explain=explain)
        return _one(searcher, query, filters, explain=explain, as_json=as_json)


def _one(searcher: Searcher, query: str, filters: Filters, *, explain: bool, as_json: bool) -> int:
    from serve.query import Query

    answer = searcher.answer(Query(query, **filters._asdict(), explain=explain))
    if as_json:
        output.emit(answer.as_dict())
    else:
        _print(answer, explain=explain)
    return int(ExitCode.OK)


@contextmanager
def _searching(chosen: Settings) -> Iterator[Searcher]:
    """What answers, for the length of a block; who has no configuration either is told to begin with that."""
    from pipeline.engine import wiring
    from serve.search import Searcher

    searcher = Searcher(chosen.data_dir, wiring.embedder_config(chosen), chosen.chroma.token)
    try:
        yield searcher
    except NoIndexError as error:
        if chosen.config_file:
            raise
        raise NoIndexError(error.what, where=error.where, next_step=_BEGIN) from None
    finally:
        with suppress(OperatorError):  # no index, nothing to close
            searcher.live.current().close()


def _check_harness(name: object) -> None:
    """A harness that nobody knows would filter nothing, and look as if it had."""
    if isinstance(name, str) and name and name not in HARNESSES:
        raise _unusable(f"there is no harness `{name}`", f"use one of: {', '.join(HARNESSES)}")


def _stream(searcher: Searcher, filters: Filters, *, explain: bool) -> int:
    """One JSON result per input line, errors included, so that line n answers line n."""
    failed = False
    for line in _lines():
        try:
            result = searcher.answer(_query(line, filters, explain=explain)).as_dict()
        except OperatorError as error:
            failed = True
            result = error.as_dict()
        output.emit_line(result)
        if not output.flush():
            break
    return int(ExitCode.FAILED if failed else ExitCode.OK)


def _lines() -> Iterator[bytes]:
    """The lines of standard input as they come; the rest of one that is far too long is skipped."""
    source = sys.stdin.buffer
    while line := source.readline(_LONGEST_LINE):
        yield line
        while not line.endswith(b"\n") and (line := source.readline(_LONGEST_LINE)):
            pass


def _query(line: bytes, filters: Filters, *, explain: bool) -> Query:
    """A line of --stdin: a JSON object with `query` and any of the filters, or the query itself."""
    from serve.query import Query

    if len(line) >= _LONGEST_LINE:
        raise _unusable("the line is too long", f"use less than {_LONGEST_LINE} bytes")
    try:
        text = line.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise _unusable("the line is not UTF-8", "convert it") from None
    if not text.startswith("{"):
        return Query(text, **filters._asdict(), explain=explain)
    value = _object(text)
    _check_harness(value.get("harness"))
    return Query.of(value, {**filters._asdict(), "explain": explain})


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # Not a query that happens to begin with a brace: half an object must not be answered as if it were words.
        raise _unusable("the line begins like a JSON object and is none", 'write {"query": "..."}') from None
    return dict(value)


def _unusable(what: str, next_step: str) -> OperatorError:
    return OperatorError(what, next_step=next_step, code=ExitCode.USAGE)


def _print(answer: Answer, *, explain: bool) -> None:
    for name, lane in answer.lanes.items():
        if not lane.used:
            output.say(output.styled(f"without the {name} lane: {output.plain(lane.reason)}", "yellow"))
    if not answer.rows:
        output.say("no skill fits")
    for place, row in enumerate(answer.rows, 1):
        record = row.record
        output.say(f"{place}. {output.styled(output.plain(record.name), 'bold')}  [{record.state}]  {row.score:.3f}")
        output.say(f"   {output.styled(output.plain(record.id), 'cyan')}")
        output.say(f"   {_cut(output.plain(record.description))}")
        more = [f"also: {', '.join(record.duplicates)}"] if record.duplicates else []
        output.say(output.styled(f"   {output.plain('; '.join([', '.join(record.categories), *more]))}", "dim"))
        for line in [*row.explanation(), f"path: {record.path}"] if explain else ():
            output.say(output.styled(f"   {output.plain(line)}", "dim"))
    end = f"{len(answer.rows)} of {output.count(answer.total, 'skill')}, index {answer.generation[:8]}, {answer.age()} old"
    output.say(output.styled(end, "dim"))


def _cut(text: str) -> str:
    """A text no longer than is shown, ended at a word where it is longer."""
    if len(text) <= _SHOWN:
        return text
    head = text[: _SHOWN - 1]
    return f"{head.rpartition(' ')[0] or head}…"
