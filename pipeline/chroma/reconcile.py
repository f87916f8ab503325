"""Bringing the store to what is wanted: held against wanted, the difference written in batches, the stamp last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.chroma.faults import StoreDamagedError, StoreError
from pipeline.chroma.plan import Plan, plan
from pipeline.chroma.store import BATCH, Store
from pipeline.engine import faults

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.chroma.engine import Rows

    Load = Callable[[Sequence[str]], Rows]
    Advance = Callable[[int], None]


@dataclass(frozen=True)
class Outcome:
    """What was done: the plan that was carried out, the collections of older embedders that were removed."""

    plan: Plan
    retired: tuple[str, ...] = ()


def reconcile(
    store: Store,
    wanted: Mapping[str, str],
    load: Load,
    stamp: str,
    *,
    held: Mapping[str, str] | None = None,
    advance: Advance | None = None,
) -> Outcome:
    """Make the store hold exactly `wanted` (ID to row key) and stamp it.

    load: gives the rows of some IDs, at most BATCH at a time, in their order. held: what the store is known to hold,
    because nobody touched it since it was written; None reads and tests everything it holds. advance: told after each
    batch how many rows were written. A store that turns out to be damaged is begun anew, once, and `Store.notices` says
    so.
    """
    try:
        return _carry_out(store, wanted, load, stamp, held, advance)
    except StoreDamagedError as error:
        store.start_over(error)
        return _carry_out(store, wanted, load, stamp, {}, advance)


def _carry_out(
    store: Store,
    wanted: Mapping[str, str],
    load: Load,
    stamp: str,
    held: Mapping[str, str] | None,
    advance: Advance | None,
) -> Outcome:
    if held is None:
        store.check()
    todo = plan(wanted, store.held() if held is None else held)
    faults.reach("upsert-before-rows")
    store.drop(todo.drop)
    for at in range(0, len(todo.put), BATCH):
        ids = todo.put[at : at + BATCH]
        loaded = load(ids)
        if tuple(loaded.ids) != ids:  # the plan may be another than the caller foresaw: see `held`
            raise ValueError("the rows that were loaded are not those that were asked for")
        store.put(loaded)
        if advance:
            advance(len(ids))
        faults.reach("upsert-after-batch")
    if todo and store.count() != len(wanted):
        if held is not None:  # what was said to be held was not so: ask the store itself
            return _carry_out(store, wanted, load, stamp, None, advance)
        raise StoreError(
            f"the store holds {store.count()} rows after {len(wanted)} were written",
            where=store.where,
            next_step="end what else writes to this collection, then run `retrieval build` again",
        )
    faults.reach("upsert-before-stamp")
    if store.stamp() != stamp:
        store.set_stamp(stamp)
    return Outcome(todo, store.retire())
