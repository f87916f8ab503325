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


if TYPE_CHECKING:
    Results = Callable[[], Sequence[bytes]]
    Compute = Callable[[Sequence[Item]], Results]


def _nothing() -> list[bytes]:
    return []


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
        begin: Compute,
    ) -> tuple[list[R], set[str]]:
        """A row for each item, and the IDs whose results had to be computed.

        previous: rows of the last run by ID; one with the same key is taken over as it is. row_of: makes a row of a
        result. begin: begins the results of a batch of items; calling what it returns gives them, in their order.
        """
        return self.begin(items, previous, row_of, begin)()

    def begin(
        self,
        items: Sequence[Item],
        previous: Mapping[str, R],
        row_of: Callable[[Item, bytes], R],
        begin: Compute,
    ) -> Callable[[], tuple[list[R], set[str]]]:
        """As `rows`, in two parts: the first batch is begun here, and calling what comes back does the rest."""
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
        computed = self._begun(todo, begin)

        def finish() -> tuple[list[R], set[str]]:
            held.update(computed())
            rows.extend(row_of(item, held[item.key]) for item in missing)
            self.count.executed += len(todo)
            self.count.reused += len(items) - len(todo)
            return rows, {item.id for item in todo}

        return finish

    def _begun(self, todo: Sequence[Item], begin: Compute) -> Callable[[], dict[str, bytes]]:
        """Results are kept batch by batch, each while the next one is being computed."""
        batches = [todo[start : start + BATCH] for start in range(0, len(todo), BATCH)]
        first: Results = begin(batches[0]) if batches else _nothing

        def finish() -> dict[str, bytes]:
            made: dict[str, bytes] = {}
            if batches:
                self.progress.begin(self.step, len(todo))
            results = first
            for batch, after in zip(batches, [*batches[1:], []], strict=False):
                values = results()
                results = begin(after) if after else _nothing
                pairs = [(item.key, value) for item, value in zip(batch, values, strict=True)]
                self.memo.put(self.step, pairs)
                made.update(pairs)
                self.progress.advance(self.step, len(batch))
            return made

        return finish
