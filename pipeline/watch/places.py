"""Where to look: the sources' folders with all that lies below, and beside them the few paths that decide what is followed.

A folder that does not exist yet is waited for at the nearest one above it that does.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.config import hermes
from pipeline.config.lookup import config_places
from pipeline.config.paths import Expander, absolute
from pipeline.errors import ConfigError
from pipeline.settings import OVERRIDES_NAME, TAXONOMY_NAME, locate
from serve.ignored import IGNORED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipeline.config.lookup import Lookup
    from pipeline.settings import Settings


class Root(NamedTuple):
    """A source's folder. identity: device and inode behind all links, None while there is no such folder."""

    source: str
    path: str
    real: str
    identity: tuple[int, int] | None


class Places(NamedTuple):
    """What is watched for some settings.

    roots: watched with everything below. points: single paths whose change means that configuration and folders are looked at
    again, and everything above them. folders: so is whatever changes directly in these. anchors: existing folders, watched
    without what lies below, in which changes of points and folders show. data: the data directory, which is never followed.
    locks: files that exist while Git writes to a folder that a root lies in.
    """

    roots: tuple[Root, ...]
    points: frozenset[str]
    folders: frozenset[str]
    anchors: tuple[str, ...]
    data: str
    locks: tuple[str, ...] = ()

    def decides(self, path: str) -> bool:
        """Whether a change at `path` may change what is followed."""
        return path in self.points or os.path.dirname(path) in self.folders

    def sources_of(self, paths: Iterable[str]) -> dict[str, list[str]]:
        """The sources that a change concerns, by path, for those paths that concern any. Paths may be spelled through any link."""
        found: dict[str, list[str]] = {}
        below = self.data + os.sep
        reals: dict[str, str] = {}
        for path in paths:
            folder, name = os.path.split(path)
            if folder not in reals:
                reals[folder] = os.path.realpath(folder)
            real = os.path.realpath(path) if os.path.islink(path) else os.path.join(reals[folder], name)
            if any(f"{spelled}{os.sep}".startswith(below) for spelled in (path, real)):
                continue
            if names := [root.source for root in self.roots if _inside(path, root.path) or _inside(real, root.real)]:
                found[path] = names
        return found


def _inside(path: str, root: str) -> bool:
    """Whether a path is a root or below it, where a scan looks."""
    if path == root:
        return True
    base = root if root.endswith(os.sep) else root + os.sep
    return path.startswith(base) and IGNORED.isdisjoint(path[len(base) :].split(os.sep))


def survey(settings: Settings, config: str, last: Places | None = None) -> Places:
    """What to watch for the settings in force. config: what `--config` names.

    last: what was watched before; while the configuration cannot be read, the files to wait for are taken from there.
    """
    roots = tuple(_root(source.name, str(source.path)) for source in settings.sources if source.enabled)
    try:
        lookup, found = locate(config or None)
        files = {*_files(lookup, found, settings), *(entry for root in roots for entry in _links(root.path))}
        folders = frozenset(_hermes_folders(lookup, found))
    except ConfigError:
        files = set(last.points) if last else {str(settings.config_file or ""), *map(str, settings.env_files)} - {""}
        folders = last.folders if last else frozenset()
    wanted = {*files, *(os.path.realpath(path) for path in files), *(root.path for root in roots), *folders}
    points = {above for path in wanted for above in _at_and_above(path)}
    anchors = {*map(_nearest, map(os.path.dirname, wanted)), *map(_nearest, folders)}
    locks = {lock for root in roots for lock in _git_locks(root.real)}
    data = os.path.realpath(settings.data_dir)
    return Places(roots, frozenset(points), folders, tuple(sorted(anchors)), data, tuple(sorted(locks)))


def _root(source: str, path: str) -> Root:
    try:
        stat = os.stat(path)
    except OSError:
        return Root(source, path, os.path.realpath(path), None)
    return Root(source, path, os.path.realpath(path), (stat.st_dev, stat.st_ino))


def _files(lookup: Lookup, found: Path | None, settings: Settings) -> Iterator[str]:
    """The files that settings are read from, whether they exist or not."""
    beside = found.parent if found else None
    for path in (found,) if found else config_places(lookup):
        yield str(path)
    for folder in {lookup.machine.cwd, beside} - {None}:
        yield os.path.join(str(folder), ".env")
    if beside is not None:
        yield str(beside / TAXONOMY_NAME)
        yield str(beside / OVERRIDES_NAME)
    yield str(settings.taxonomy_path)
    yield str(settings.overrides_path)


def _links(path: str) -> Iterator[str]:
    """The links among a path and the folders above it: each can be turned elsewhere."""
    return (above for above in _at_and_above(path) if os.path.islink(above))


def _git_locks(path: str) -> Iterator[str]:
    """Where Git has its lock while it writes to a folder: in the nearest checkout around it, if there is one."""
    checkouts = (os.path.join(above, ".git") for above in _at_and_above(path))
    return (os.path.join(git, "index.lock") for git in islice(filter(os.path.isdir, checkouts), 1))


def _hermes_folders(lookup: Lookup, found: Path | None) -> Iterator[str]:
    """Folders in which skill folders of a Hermes home and of its profiles appear."""
    from pipeline.config.document import read_blocks, read_document

    if found is None:
        return
    machine = lookup.machine
    default = hermes.default_home(machine.environ, machine.home, machine.os_name)
    for block in read_blocks(read_document(found)):
        if not (block.enabled and block.profiles):
            continue
        expander = Expander(machine.environ, machine.home, machine.os_name, block.path_where)
        home = str(lookup.path("HERMES_HOME") or default)
        if block.path:
            home = absolute(expander.expand(block.path), str(found.parent), machine.os_name, block.path_where)
        root = hermes.root_of(home, default, machine.os_name)
        profiles = os.path.join(root, "profiles")
        homes = [root, *(os.path.join(profiles, name) for name in _names(profiles))]
        yield profiles
        for home in homes:
            yield home
            yield os.path.join(home, "skills")  # where an archive appears


def _names(folder: str) -> Sequence[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return ()  # none yet


def _at_and_above(path: str) -> Iterator[str]:
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _nearest(path: str) -> str:
    """The nearest existing folder at or above a path."""
    return next(above for above in _at_and_above(path) if os.path.isdir(above))
