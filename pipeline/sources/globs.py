"""Include and exclude patterns for the folders of a source.

A pattern is matched against a folder's path relative to the source ("/"-separated, "." for the source's own folder).
`*`, `?` and `[abc]` stay within one part of the path, `**` stands for any number of parts, and a pattern that names a
folder covers everything below it: `drafts` and `drafts/**` leave out the folder `drafts/a`, `**/drafts` does so at any
depth, `*-old` only at the top. Upper and lower case differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

ROOT = "."


class Globs:
    """Whether a folder is wanted: named by an include pattern (all are when there is none) and by no exclude pattern."""

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._include = _compiled(include)
        self._exclude = _compiled(exclude)
        self.keeps_all = self._include is None and self._exclude is None

    def keeps(self, folder: str) -> bool:
        """Whether a skill in `folder` is wanted."""
        if self.keeps_all:
            return True
        named = self._include is None or self._include.fullmatch(folder or ROOT) is not None
        return named and not self.excludes(folder)

    def excludes(self, folder: str) -> bool:
        """Whether an exclude pattern covers `folder`, and so all below it."""
        return self._exclude is not None and self._exclude.fullmatch(folder or ROOT) is not None


def _compiled(patterns: Sequence[str]) -> re.Pattern[str] | None:
    if not patterns:
        return None
    return re.compile("|".join(f"(?:{_translated(pattern)})" for pattern in patterns), re.DOTALL)


def _translated(pattern: str) -> str:
    parts = [part for part in pattern.split("/") if part not in ("", ROOT)]
    if not parts:
        return re.escape(ROOT)  # the source's own folder
    above = ["(?:[^/]+/)*" if part == "**" else f"{_part(part)}/" for part in parts[:-1]]
    last = ".+" if parts[-1] == "**" else f"{_part(parts[-1])}(?:/.+)?"
    return "".join((*above, last))


def _part(part: str) -> str:
    """One part of a path as a regular expression."""
    out = []
    at = 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (end := part.find("]", at + 2 if part[at : at + 1] == "!" else at + 1)) > 0:
            chosen = part[at:end].replace("\\", "\\\\").replace("^", "\\^").replace("[", "\\[")
            out.append(f"[^/{chosen[1:]}]" if chosen.startswith("!") else f"[{chosen}]")
            at = end + 1
        else:
            out.append(re.escape(char))
    return "".join(out)
