"""A query: what is asked, what it is narrowed to, and which rows of an index that lets through."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from serve.errors import ExitCode, OperatorError
from serve.lanes.hits import Mask
from serve.snapshot import Snapshot

MAX_QUERY = 20_000
MAX_LIMIT = 200
_LISTS = ("source", "category", "state")


class Query(msgspec.Struct, frozen=True, kw_only=False):
    """A question. Empty filters let everything through; harness leaves out what that harness shows itself."""

    text: str
    limit: int = 8
    source: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    harness: str = ""
    explain: bool = False

    @classmethod
    def of(cls, value: object, defaults: dict[str, Any]) -> Query:
        """A query from JSON: an object with `query` and any of the filters (a list or one word)."""
        if not isinstance(value, dict) or not isinstance(value.get("query"), str):
            raise _unusable("a JSON query needs a text field `query`", 'write {"query": "…"}')
        given = {key: item for key, item in value.items() if key != "query"}
        unknown = sorted(given.keys() - {*cls.__struct_fields__} | given.keys() & {"text"})
        if unknown:
            raise _unusable(f"a query has no field `{unknown[0]}`", f"use {', '.join(cls.__struct_fields__[1:])}")
        given.update({key: [given[key]] for key in _LISTS if isinstance(given.get(key), str)})
        try:
            return msgspec.convert({**defaults, **given, "text": value["query"]}, cls)
        except msgspec.ValidationError as error:
            raise _unusable(f"the query cannot be read: {error}", "see `retrieval search --help`") from error


def checked(query: Query) -> str:
    """The words of a query on one line. Raises OperatorError when they or the limit cannot be used."""
    text = " ".join(query.text.split())
    if not text:
        raise _unusable("the query is empty", "say in a few words what you need")
    if len(text) > MAX_QUERY:
        raise _unusable(f"the query has {len(text)} characters", f"use at most {MAX_QUERY}")
    if not 1 <= query.limit <= MAX_LIMIT:
        raise _unusable(f"the limit is {query.limit}", f"use 1 to {MAX_LIMIT}")
    return text


def mask_of(snapshot: Snapshot, query: Query) -> Mask | None:
    """Rows that the filters let through; None when there is no filter. An unknown value is an error, not an empty answer."""
    mask: Mask | None = None
    for facet in _LISTS:
        values: tuple[str, ...] = getattr(query, facet)
        if not values:
            continue
        known = snapshot.facet(facet)
        chosen = np.zeros(len(snapshot), dtype=bool)
        for value in values:
            if value not in known:
                names = ", ".join(sorted(known)[:60]) or "(none)"
                raise _unusable(f"no indexed skill has the {facet} `{value}`", f"use one of: {names}")
            chosen[known[value]] = True
        mask = chosen if mask is None else mask & chosen
    if query.harness:
        native = snapshot.facet_rows("native_in", query.harness)
        if len(native):
            mask = np.ones(len(snapshot), dtype=bool) if mask is None else mask
            mask[native] = False
    return mask


def _unusable(what: str, next_step: str) -> OperatorError:
    return OperatorError(what, next_step=next_step, code=ExitCode.USAGE)
