"""Follows the symbolic links of a source, never out of it: a link to a skill is an alias, not a second skill."""

from __future__ import annotations

import errno
import os
import stat as modes
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pipeline.sources.listing import is_skill_file
from pipeline.sources.tree import Link, Owner, Tree, stat_key
from serve.ignored import IGNORED

MAX_ALIASES = 50_000  # of one source together: links to folders of skills multiply
_FAULTS = {errno.ENOENT: "dangling_link", errno.ENOTDIR: "dangling_link", errno.ELOOP: "link_loop"}


class Target(NamedTuple):
    """Where a link leads. kind: of the problem that keeps it from being followed, "" for none.

    folder: relative to the source. stat: None when there is nothing to look at.
    """

    kind: str
    folder: str
    stat: os.stat_result | None
    error: OSError | None = None


def resolve(tree: Tree, path: str) -> Target:
    """Where the link at `path` leads in the end."""
    try:
        real = os.path.realpath(path, strict=True)
        stat = os.stat(real)
    except OSError as error:
        return Target(_FAULTS.get(error.errno or 0, "unreadable"), "", None, error)
    base = tree.real if tree.real.endswith("/") else f"{tree.real}/"
    if not f"{real}/".startswith(base):
        return Target("outside_link", "", stat)
    folder = real[len(base) :]
    if not IGNORED.isdisjoint(folder.split("/")):
        return Target("ignored_target", folder, stat)
    return Target("", folder, stat)


def linked_skill(tree: Tree, folder: str, names: Sequence[str]) -> Owner | None:
    """The skill that `folder` is because of a link called SKILL.md to a file that no walk finds as a skill's by itself.

    A link to another skill's file makes no skill here: it is kept for `follow_links`.
    """
    for name in sorted(names, key=lambda name: (name != "SKILL.md", name)):
        path = tree.path(folder, name)
        target = resolve(tree, path)
        if target.kind or target.stat is None:
            _report(tree, path, target)
        elif not modes.S_ISREG(target.stat.st_mode):
            tree.report("not_a_file", path)
        elif target.stat.st_size > tree.max_bytes:
            tree.report("too_large", path)
        elif is_skill_file(target.folder.rpartition("/")[2]):
            tree.links.append(Link(folder, name, None))
        elif known := tree.linked.get(target.folder):
            tree.aliases.setdefault(known.folder, []).append(path)
        else:
            owner = Owner(folder, path, stat_key(target.stat))
            tree.linked[target.folder] = owner
            if name != "SKILL.md":
                owner.note("file_case")
            return owner
    return None


def follow_links(tree: Tree) -> None:
    """Makes the links met during the walk into aliases and problems. What a package holds by links is no part of it."""
    skills = sorted(tree.owners) if tree.links else []
    left = MAX_ALIASES
    for link in tree.links:
        path = tree.path(link.folder, link.name)
        target = resolve(tree, path)
        if target.kind or target.stat is None:
            _not_followed(tree, link, path, target)
        elif modes.S_ISDIR(target.stat.st_mode):
            left -= _follow_folder(tree, link, target.folder, skills, left)
        elif is_skill_file(link.name):
            folder = target.folder.rpartition("/")[0]
            if folder in tree.owners:
                tree.aliases.setdefault(folder, []).append(path)
        elif link.owner is not None:
            link.owner.note("bundled_link")
        if left <= 0:
            tree.report("too_many_links", path)
            return


def _follow_folder(tree: Tree, link: Link, target: str, skills: list[str], left: int) -> int:
    """Follows a link to a folder; says how many aliases that made.

    A walked folder's path holds no links below the source's own folder, so it can be compared with the target's.
    """
    path = tree.path(link.folder, link.name)
    if target == "" or f"{link.folder}/".startswith(f"{target}/"):
        tree.report("link_loop", path)
        return 0
    found = list(islice(_at_and_below(skills, target), left))
    for skill in found:
        alias = f"{path}{tree.owners[skill].path[len(tree.path(target)) :]}"
        tree.aliases.setdefault(skill, []).append(alias)
    if not found and link.owner is not None:
        link.owner.note("bundled_link")
    return len(found)


def _not_followed(tree: Tree, link: Link, path: str, target: Target) -> None:
    """A link that may lead to skills is a problem; one that stands for a bundled file is a remark about its skill."""
    is_folder = target.stat is not None and modes.S_ISDIR(target.stat.st_mode)
    looks_like_folder = target.stat is None and not os.path.splitext(link.name)[1]
    if is_folder or looks_like_folder or is_skill_file(link.name):
        _report(tree, path, target)
    elif link.owner is not None:
        link.owner.note("bundled_link")


def _report(tree: Tree, path: str, target: Target) -> None:
    if target.error is not None and target.kind == "unreadable":
        tree.report_error(path, target.error)
    else:
        tree.report(target.kind, path)


def _at_and_below(names: list[str], folder: str) -> Iterator[str]:
    """Those of the sorted `names` that are `folder` or a path below it."""
    at = bisect_left(names, folder)
    if at < len(names) and names[at] == folder:
        yield folder
    below = f"{folder}/"
    at = bisect_left(names, below)
    while at < len(names) and names[at].startswith(below):
        yield names[at]
        at += 1
