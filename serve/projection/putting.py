"""The step that changes a lane: a finished copy takes its place, and an older one leaves it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from serve.projection import swap
from serve.projection.copying import holds
from serve.projection.layout import MARKER, Layout, read_marker, same_files
from serve.projection.manifest import Row

_CACHES = (".pyc", ".DS_Store")


def put_in_place(layout: Layout, harness: str, new: Path, folder: str, row: Row | None) -> None:
    """Rename the finished copy `new` to the folder of that name in the lane. row: the skill's copy that lies there now.

    An older copy goes to where `new` was, beside which it is removed later; with changes made by others it is kept. Raises
    OSError, the lane being as it was.
    """
    lane = layout.lane(harness)
    aside = new.with_name("old")
    if row is not None and row.folder == folder:
        aside = swap.exchange(new, lane / folder, aside)
    else:
        swap.put(new, lane / folder)
        if row is not None:
            os.rename(lane / row.folder, aside)
    if row is not None and was_changed(aside, row):
        keep(layout, harness, aside, row.folder)


def keep(layout: Layout, harness: str, folder: Path, name: str) -> Path:
    """Move a copy that somebody has changed out of the way, to where no harness looks. Returns where it is."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    above = layout.kept / harness
    above.mkdir(parents=True, exist_ok=True)
    number = 0
    while True:
        place = above / (f"{name}-{stamp}-{number}" if number else f"{name}-{stamp}")
        try:
            swap.put(folder, place)
        except FileExistsError:
            number += 1
        else:
            return place


def was_changed(folder: Path, row: Row) -> bool:
    """Whether a copy holds anything that projecting did not write. Caches do not count."""
    written = {*row.paths, MARKER}
    for parent, _folders, files in os.walk(folder):
        within = os.path.relpath(parent, folder)
        for name in files:
            path = name if within == os.curdir else f"{within}/{name}".replace(os.sep, "/")
            if path not in written and not name.endswith(_CACHES):
                return True
    if same_files(row.copied, folder, row.paths):
        return False
    marker = read_marker(folder)
    if marker is None:
        return True  # nothing tells any more what was written
    return not holds(folder, [file for file in marker.files if os.path.lexists(folder / file.path)])
