"""Knows on which file systems the kernel does not tell what others change: those that lie on another machine."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

# What a server or a host changes there, this machine's kernel learns of only when it looks.
REMOTE = frozenset(
    (
        "9p",
        "afpfs",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "drvfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "ocfs2",
        "prl_fs",
        "smb3",
        "smbfs",
        "vboxsf",
        "virtiofs",
        "vmhgfs",
        "webdav",
    )
)
_MOUNTINFO = "/proc/self/mountinfo"


def remote(path: str) -> str:
    """The type of the file system of a folder when events cannot be relied on there, else ""."""
    kind = type_of(os.path.realpath(path), mounted())
    return kind if kind in REMOTE or kind.startswith("fuse.") else ""


def mounted() -> dict[str, str]:
    """The type of each mounted file system by its folder; empty where that cannot be known."""
    if not sys.platform.startswith("linux"):
        return {}
    try:
        return parse(Path(_MOUNTINFO).read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        return {}


def parse(text: str) -> dict[str, str]:
    """The same out of the text of a mountinfo file. What is mounted later lies over what was there."""
    found = {}
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if separator and len(fields) > 4:
            found[_unescaped(fields[4])] = after.split(" ", 1)[0]
    return found


def type_of(path: str, mounts: dict[str, str]) -> str:
    """The type of the file system that a path without links lies on; "" when unknown."""
    while path not in mounts:
        above = os.path.dirname(path)
        if above == path:
            return ""
        path = above
    return mounts[path]


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
