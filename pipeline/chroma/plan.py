"""What has to happen for the store to hold what is wanted: the difference, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Plan(NamedTuple):
    """IDs to write and IDs to remove, both in ascending order."""

    put: tuple[str, ...]
    drop: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.put or self.drop)


def plan(wanted: Mapping[str, str], held: Mapping[str, str]) -> Plan:
    """The plan that makes `held` equal to `wanted`. Both map an ID to the digest of its row."""
    return Plan(
        put=tuple(sorted(key for key, digest in wanted.items() if held.get(key) != digest)),
        drop=tuple(sorted(held.keys() - wanted.keys())),
    )
