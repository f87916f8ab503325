"""The anchors of a document's headings, as code hosts make them: the end of a section's ID."""

from __future__ import annotations

import re

_DROPPED = re.compile(r"[^\w\- ]")


class Anchors:
    """Gives each heading of one document an anchor of its own, in order."""

    def __init__(self) -> None:
        self._given: set[str] = set()
        self._next: dict[str, int] = {}

    def of(self, heading: str) -> str:
        """The heading in lower case without punctuation, words joined by "-"; a number makes it unique."""
        base = _DROPPED.sub("", heading.lower()).replace(" ", "-") or "section"
        anchor = base
        while anchor in self._given:
            number = self._next.get(base, 1)
            self._next[base] = number + 1
            anchor = f"{base}-{number}"
        self._given.add(anchor)
        return anchor
