"""Ticking lines of a list on a terminal: by their numbers, so that any terminal will do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.cli import output

if TYPE_CHECKING:
    from collections.abc import Sequence

_HELP = "numbers or ranges tick and untick (1 3-5), a ticks all, n none; ENTER goes on with the ticked ones, q leaves: "


def choose(title: str, lines: Sequence[str]) -> list[int]:
    """The places of the lines that a person has ticked, in order; none when they leave or standard input ends."""
    ticked: set[int] = set()
    while True:
        output.say(output.styled(title, "bold"))
        for at, line in enumerate(lines):
            output.say(f"  [{'x' if at in ticked else ' '}] {at + 1:>{len(str(len(lines)))}}  {output.plain(line)}")
        try:
            answer = input(_HELP).strip().lower()
        except EOFError:
            return []
        if answer in {"q", "quit"}:
            return []
        if not answer:
            return sorted(ticked)
        changed = toggled(answer, len(lines))
        if changed is None:
            output.say(f"`{output.plain(answer)}` names no lines of the list")
        elif answer in {"a", "n"}:
            ticked = changed
        else:
            ticked ^= changed


def toggled(answer: str, count: int) -> set[int] | None:
    """The places that an answer names out of `count`, or None when it cannot be understood."""
    if answer in {"a", "n"}:
        return set(range(count)) if answer == "a" else set()
    named: set[int] = set()
    for part in re.split(r"[\s,]+", answer):
        found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if found is None:
            return None
        first, last = int(found[1]), int(found[2] or found[1])
        if not 1 <= first <= last <= count:
            return None
        named |= set(range(first - 1, last))
    return named
