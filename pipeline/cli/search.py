"""`retrieval search`: one query, or a stream of them."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from pipeline.cli import output
from pipeline.cli.common import settings
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from serve.search import Answer, Query, Searcher


class Filters(NamedTuple):
    """What the options ask for beside the words."""

    limit: int
    source: tuple[str, ...]
    category: tuple[str, ...]
    state: tuple[str, ...]
    harness: str


def search(query: str, filters: Filters, config: str, *, explain: bool, stdin: bool, as_json: bool) -> int:
    """Answer one query, or with stdin each line in its order. Returns the exit code."""
    _quiet_threads()
    from pipeline.engine import wiring
    from serve.search import Query, Searcher

    chosen = settings(config, with_sources=False)
    searcher = Searcher(chosen.data_dir, wiring.embedder_config(chosen), chosen.chroma.token)
    if stdin:
        return _stream(searcher, filters, explain=explain)
    answer = searcher.answer(Query(query, **filters._asdict(), explain=explain))
    if as_json:
        output.emit(answer.as_dict())
    else:
        _print(answer, explain=explain)
    return int(ExitCode.OK)


def _quiet_threads() -> None:
    """One BLAS thread, said before numpy is loaded: two cost more than they gain at these sizes when another core is busy."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _stream(searcher: Searcher, filters: Filters, *, explain: bool) -> int:
    """One JSON result per input line, errors included, so that line n answers line n."""
    failed = False
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            output.emit_line(searcher.answer(_query(line, filters, explain=explain)).as_dict())
        except OperatorError as error:
            failed = True
            output.emit_line(error.as_dict())
    return int(ExitCode.FAILED if failed else ExitCode.OK)


def _query(line: str, filters: Filters, *, explain: bool) -> Query:
    """A line of --stdin: a JSON object with `query` and any of the filters, or the query itself."""
    from serve.search import Query

    text = line.strip()
    if not text.startswith("{"):
        return Query(text, **filters._asdict(), explain=explain)
    try:
        value = json.loads(text)
    except ValueError:
        return Query(text, **filters._asdict(), explain=explain)  # a query may begin with a brace
    return Query.of(value, {**filters._asdict(), "explain": explain})


def _print(answer: Answer, *, explain: bool) -> None:
    for name, lane in answer.lanes.items():
        if not lane.used:
            output.say(output.styled(f"without the {name} lane: {output.plain(lane.reason)}", "yellow"))
    if not answer.rows:
        output.say("no skill fits")
    for place, row in enumerate(answer.rows, 1):
        record = row.record
        head = f"{place}. {output.styled(output.plain(record.name), 'bold')}  [{record.state}]  {row.score:.3f}"
        output.say(head)
        output.say(f"   {output.styled(output.plain(record.id), 'cyan')}")
        description = output.plain(record.description)
        output.say(f"   {description[:197] + '…' if len(description) > 198 else description}")
        output.say(output.styled(f"   {', '.join(record.categories)}", "dim"))
        if explain:
            for line in row.explanation():
                output.say(output.styled(f"   {output.plain(line)}", "dim"))
    output.say(
        output.styled(
            f"{len(answer.rows)} of {answer.total} skills, index {answer.generation[:8]}, {answer.age()} old", "dim"
        )
    )
