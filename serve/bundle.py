"""Which files a skill brings along beside its SKILL.md."""

from __future__ import annotations

import os
from typing import NamedTuple

from serve.ignored import IGNORED

LISTED = 200
VISITED = 5_000  # files and folders that are looked at


class Bundle(NamedTuple):
    """files: paths relative to the skill's folder, in order, at most LISTED. more: whether there are others."""

    files: list[str]
    more: bool


def bundled(skill_path: str) -> Bundle:
    """The regular files below the folder of a SKILL.md, without links, nested skills and folders of tools."""
    root = os.path.dirname(skill_path)
    main = os.path.basename(skill_path)
    found: list[str] = []
    visited = 0
    for folder, names, files in os.walk(root):
        inside = folder != root
        if inside and any(name.casefold() == "skill.md" for name in files):
            names.clear()
            continue
        names[:] = sorted(name for name in names if name not in IGNORED)
        for name in sorted(files)[: VISITED - visited + 1]:
            path = os.path.join(folder, name)
            if (inside or name != main) and not os.path.islink(path) and os.path.isfile(path):
                found.append(os.path.relpath(path, root).replace(os.sep, "/"))
        visited += len(names) + len(files)
        if visited > VISITED or len(found) > LISTED:
            return Bundle(sorted(found)[:LISTED], more=True)
    return Bundle(sorted(found), more=False)
