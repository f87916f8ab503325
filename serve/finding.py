"""A query that is a skill's exact ID, or a name that only one skill has, needs no selector."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from serve.contract import Record
from serve.snapshot import Snapshot

LONGEST = 400  # characters of an ID or a name


def named(snapshot: Snapshot, text: str, shows: Callable[[Record], bool]) -> tuple[Record | None, str]:
    """The skill that a query names, or None, and a note when it was named by the ID of a duplicate.

    shows: whether the calling harness may be given a skill; names are unique among those only.
    """
    if not text or len(text) > LONGEST:
        return None, ""
    row = snapshot.row_of(text)
    if row is not None:
        record = snapshot.record(row)
        return (record, "") if shows(record) else (None, f"{text} is one of the harness's own skills")
    if ":" in text and (row := _row_of_duplicate(snapshot, text)) is not None:
        record = snapshot.record(row)
        if shows(record):
            return record, f"{text} is a duplicate of {record.id}, which is returned"
    visible = [r for row in snapshot.facet_rows("name", text.casefold()) if shows(r := snapshot.record(int(row)))]
    return (visible[0], "") if len(visible) == 1 else (None, "")


def _row_of_duplicate(snapshot: Snapshot, skill_id: str) -> int | None:
    """The row whose record lists an ID among its duplicates. The records are searched as bytes: nobody decodes them all."""
    quoted = msgspec.json.encode(skill_id)
    return next((row for row in snapshot.rows_with(quoted) if skill_id in snapshot.record(row).duplicates), None)
