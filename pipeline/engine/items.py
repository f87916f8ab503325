"""Item memoisation: inside a step each item is looked up by what makes its result, and computed only when that is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.engine.memo import Memo
    from pipeline.engine.report import Progress, StepCount

BATCH = 512


class KeyedRow(Protocol):
    """A manifest row that knows the key of its result."""

    @property
    def id(self) -> str: ...

    @property
    def key(self) -> str: ...


R = TypeVar("R", bound=KeyedRow)


class Item(NamedTuple):
    """One item of a step: whose it is, the key of its result, and its place in the step's inputs."""

    id: str
    key: str
    place: int


class Resolver:
    """Looks items of one step up and computes the missing ones, committing them in small batches."""

    def __init__(self, memo: Memo, step: str, count: StepCount, progress: Progress) -> None:
        self.memo = memo
        self.step = step
        self.count = count
        self.progress = progress

    def rows(
        self,
        items: Sequence[Item],
        previous: Mapping[str, R],
        row_of: Callable[[Item, bytes], R],
        compute: Callable[[Sequence[Item]], Sequence[bytes]],
    ) -> tuple[list[R], set[str]]:
        """A row for each item, and the IDs whose results had to be computed.

        previous: rows of the last run by ID; one with the same key is taken over as it is. row_of: makes a row of a
        result. compute: makes results of a batch of items, in their order.
        """
        rows: list[R] = []
        missing: list[Item] = []
        for item in items:
            old = previous.get(item.id)
            if old is not None and old.key == item.key:
                rows.append(old)
            else:
                missing.append(item)
        held = self.memo.get(self.step, [item.key for item in missing])
        todo = list({item.key: item for item in missing if item.key not in held}.values())
        if todo:
            held.update(self._computed(todo, compute))
        rows.extend(row_of(item, held[item.key]) for item in missing)
        self.count.executed += len(todo)
        self.count.reused += len(items) - len(todo)
        return rows, {item.id for item in todo}

    def _computed(self, todo: Sequence[Item], compute: Callable[[Sequence[Item]], Sequence[bytes]]) -> dict[str, bytes]:
        self.progress.begin(self.step, len(todo))
        made: dict[str, bytes] = {}
        for start in range(0, len(todo), BATCH):
            batch = todo[start : start + BATCH]
            values = compute(batch)
            pairs = [(item.key, value) for item, value in zip(batch, values, strict=True)]
            self.memo.put(self.step, pairs)
            made.update(pairs)
            self.progress.advance(self.step, len(batch))
        return made
