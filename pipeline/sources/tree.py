"""The state of one walk: skills being put together, folders seen, links to follow up and problems met."""

from __future__ import annotations

import os
from typing import NamedTuple

import msgspec

from pipeline.model import Problem
from pipeline.sources.listing import Listing
from pipeline.sources.problems import os_problem, problem

Stat = tuple[int, int, int, int]  # size in bytes, mtime_ns, ctime_ns, inode
BundledFile = tuple[str, Stat, bool]  # path relative to the skill's folder, stat, whether executable


def stat_key(stat: os.stat_result) -> Stat:
    """What tells whether a file may have changed."""
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


class Owner(msgspec.Struct, gc=False):
    """A skill being put together: the folders below it belong to it until a nested skill takes over.

    path: of its file, "" when that cannot be had, so that the skill only keeps its files out of the package around it.
    """

    folder: str
    path: str
    stat: Stat
    files: list[BundledFile] = []
    diagnostics: tuple[str, ...] = ()

    def note(self, diagnostic: str) -> None:
        """Adds a diagnostic, once."""
        if diagnostic not in self.diagnostics:
            self.diagnostics += (diagnostic,)

    def within(self, path: str) -> str:
        """`path` in the source as a path in the skill's folder."""
        return path[len(self.folder) + 1 :] if self.folder else path


class Link(NamedTuple):
    """A symbolic link met in `folder`, which belongs to `owner`'s package."""

    folder: str
    name: str
    owner: Owner | None


class Tree:
    """root: the source's folder as configured, absolute. real: the same without links; nothing outside is followed.

    max_bytes: the size of a skill's file from which on it is a problem.
    """

    def __init__(self, source: str, root: str, real: str, max_bytes: int) -> None:
        self.source = source
        self.max_bytes = max_bytes
        self.root = root
        self.real = real
        self.base = root if root.endswith("/") else f"{root}/"
        self.owners: dict[str, Owner] = {}  # by folder, parents before what is nested in them
        self.listings: dict[str, Listing] = {}
        self.links: list[Link] = []
        self.linked: dict[str, Owner] = {}  # skills whose file is a link, by the link's target
        self.aliases: dict[str, list[str]] = {}  # by the skill's folder
        self.problems: list[Problem] = []

    def path(self, folder: str, name: str = "") -> str:
        """The absolute path of `folder`, or of `name` in it."""
        relative = f"{folder}/{name}" if folder and name else folder or name
        return f"{self.base}{relative}" if relative else self.root

    def report(self, kind: str, where: str) -> None:
        """Notes a problem at the absolute path `where`."""
        self.problems.append(problem(kind, self.source, where))

    def report_error(self, where: str, error: OSError) -> None:
        """Notes the problem that `error` stands for."""
        self.problems.append(os_problem(self.source, where, error))
