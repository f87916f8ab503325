"""Looks at a folder without events: one digest over the stats of everything in it that a scan may look at."""

from __future__ import annotations

import os
import stat as modes
import time
from typing import NamedTuple

from blake3 import blake3

from pipeline.sources.listing import RACY_NS
from serve.ignored import IGNORED


class Pulse(NamedTuple):
    """digest: over all paths, sizes, times and inodes. settled: False when something changed so shortly before that it may
    change once more without a trace.
    """

    digest: bytes
    settled: bool


def pulse(root: str, data: str = "") -> Pulse:
    """The state of a folder. data: a folder that is left out, with all below. Never raises: what cannot be seen counts as such."""
    started = time.time_ns()
    hasher = blake3()
    newest = 0
    stack = [root]
    while stack:
        folder = stack.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            hasher.update(f"{folder!r} {error.errno}\n".encode())
            continue
        lines = []
        for entry in found:
            if entry.name in IGNORED or _own(entry, data):
                continue
            line, changed = _seen(entry)
            lines.append(line)
            newest = max(newest, changed)
            if entry.is_dir(follow_symlinks=False):
                stack.append(entry.path)
        hasher.update("".join(lines).encode("utf-8", "surrogateescape"))
    return Pulse(hasher.digest(), newest < started - RACY_NS)


def _own(entry: os.DirEntry[str], data: str) -> bool:
    """Whether an entry is the data directory, or a link into it: what is written there is no change."""
    if not data:
        return False
    return f"{os.path.realpath(entry.path) if entry.is_symlink() else entry.path}{os.sep}".startswith(data + os.sep)


def _seen(entry: os.DirEntry[str]) -> tuple[str, int]:
    """A line for an entry, a link with what it leads to, and when it last changed."""
    parts, newest = [entry.path], 0
    for follow in (False, True) if entry.is_symlink() else (False,):
        try:
            stat = entry.stat(follow_symlinks=follow)
        except OSError as error:
            parts.append(str(error.errno))
            continue
        if follow and modes.S_ISDIR(stat.st_mode):
            parts.append(f"{stat.st_ino}")  # what lies in there is looked at where it lies
            continue
        newest = max(newest, stat.st_mtime_ns, stat.st_ctime_ns)
        parts.append(f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_mode}")
    return "\0".join(parts) + "\n", newest
