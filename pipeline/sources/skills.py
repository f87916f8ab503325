"""Walks a source of kind "skills": which folders are skills, which files belong to each, and what cannot be followed."""

from __future__ import annotations

import os
import stat as modes
import time
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

import msgspec

from pipeline.model import Problem
from pipeline.sources.globs import ROOT, Globs
from pipeline.sources.links import follow_links, linked_skill
from pipeline.sources.listing import (
    SKILL_FILE,
    Listing,
    WalkCache,
    collector_paused,
    is_skill_file,
    list_folder,
)
from pipeline.sources.tree import BundledFile, Link, Owner, Stat, Tree

__all__ = ["MAX_SKILL_BYTES", "BundledFile", "SkillFolder", "Stat", "Walk", "WalkCache", "walk"]

MAX_SKILL_BYTES = 4_000_000
_NO_STAT: Stat = (0, 0, 0, 0)


class SkillFolder(msgspec.Struct, frozen=True, gc=False):
    """One skill as the walk found it. Nothing of it has been read.

    folder: relative to the source, "/"-separated, "." for the source's own folder. path: of the skill's file, absolute.
    aliases: other absolute paths, through links, that lead to the same file. files: the bundled files, sorted, without
    the skill's own file, nested skills and ignored folders.
    """

    folder: str
    path: str
    stat: Stat
    files: tuple[BundledFile, ...]
    aliases: tuple[str, ...]
    diagnostics: tuple[str, ...]


class Walk(msgspec.Struct, frozen=True):
    """What a walk found, skills sorted by folder and problems by path, and the cache for the next walk.

    cache: the very cache the walk was given when nothing has to be remembered anew. excluded: how many skills the
    patterns left out. listed: how many folders had to be listed; the others hold what they held before. started_ns: when
    the walk began; a file changed less than `listing.RACY_NS` before may change again without a trace.
    """

    skills: list[SkillFolder]
    problems: list[Problem]
    cache: WalkCache
    excluded: int
    listed: int
    started_ns: int


def walk(
    root: Path,
    *,
    source: str = "",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    cache: WalkCache | None = None,
    max_bytes: int = MAX_SKILL_BYTES,
) -> Walk:
    """Finds all skills below `root`. Never raises for what it finds there: that becomes a problem.

    include, exclude: see `globs`; they choose skills, while a skill left out still keeps its files out of the package
    around it. cache: of an earlier walk; folders whose times are unchanged since are not listed again.
    """
    started = time.time_ns()
    shown = os.path.abspath(root)
    usable = cache if cache is not None and cache.root == shown else None
    with collector_paused():
        scan = _Scan(Tree(source, shown, os.path.realpath(shown), max_bytes), Globs(include, exclude), usable)
        scan.run()
        follow_links(scan.tree)
        return _finished(scan, usable, started)


class _Scan:
    """Visits every real folder once, parents first."""

    def __init__(self, tree: Tree, globs: Globs, cache: WalkCache | None) -> None:
        self.tree = tree
        self.globs = globs
        self.known = cache.listings if cache is not None else {}
        self.listed = 0

    def run(self) -> None:
        """Puts skills, links and problems into the tree."""
        tree, base, known, lstat = self.tree, self.tree.base, self.known, os.lstat
        stack: list[tuple[str, Owner | None]] = [("", None)]
        while stack:
            folder, owner = stack.pop()
            path = f"{base}{folder}"
            try:
                stat = lstat(path) if folder else os.stat(path)
            except OSError as error:
                self.unlisted(folder, error)
                continue
            listing = known.get(folder)
            if (
                listing is None
                or listing.ctime_ns != stat.st_ctime_ns
                or listing.mtime_ns != stat.st_mtime_ns
                or listing.inode != stat.st_ino
            ) and (listing := self.relist(folder, path, stat)) is None:
                continue
            tree.listings[folder] = listing
            if listing.skill:
                owner = tree.owners[folder] = self.skill(folder, f"{path}/{listing.skill}", listing)
            if listing.links or listing.oddities:
                owner = self.special(folder, path, listing, owner)
            if listing.files and owner is not None:
                _add_files(owner, owner.within(folder), path, listing.files)
            if listing.folders:
                stack.extend(self.below(folder, owner, listing.folders))

    def below(self, folder: str, owner: Owner | None, names: Sequence[str]) -> list[tuple[str, Owner | None]]:
        """What to visit in `folder`, last first."""
        prefix = f"{folder}/" if folder else ""
        found = [(prefix + name, owner) for name in reversed(names)]
        if owner is None and not self.globs.keeps_all:
            # With no package around it, all that could be found in an excluded folder is excluded too.
            found = [item for item in found if not self.globs.excludes(item[0])]
        return found

    def relist(self, folder: str, path: str, stat: os.stat_result) -> Listing | None:
        """Lists a folder; None when it cannot be had."""
        if not modes.S_ISDIR(stat.st_mode):
            return None  # something else since the folder above it was listed
        try:
            self.listed += 1
            return list_folder(path, stat)
        except OSError as error:
            self.unlisted(folder, error)
            return None

    def unlisted(self, folder: str, error: OSError) -> None:
        """Notes that a folder cannot be had; one that is simply not there any more is no problem."""
        gone = isinstance(error, FileNotFoundError | NotADirectoryError)
        if not gone:
            self.tree.report_error(self.tree.path(folder), error)
        elif not folder:
            missing = isinstance(error, FileNotFoundError)
            self.tree.report("source_missing" if missing else "not_a_folder", self.tree.root)

    def skill(self, folder: str, path: str, listing: Listing) -> Owner:
        """The skill whose file is at `path`."""
        try:
            stat = os.lstat(path)
        except OSError as error:
            self.tree.report_error(path, error)
            return Owner(folder, "", _NO_STAT)
        if not modes.S_ISREG(stat.st_mode) or stat.st_size > self.tree.max_bytes:
            self.tree.report("too_large" if modes.S_ISREG(stat.st_mode) else "not_a_file", path)
            return Owner(folder, "", _NO_STAT)
        owner = Owner(folder, path, (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))
        if listing.skill != SKILL_FILE:
            owner.note("file_case")
        if listing.twins:
            owner.note("two_skill_files")
        return owner

    def special(self, folder: str, path: str, listing: Listing, owner: Owner | None) -> Owner | None:
        """Handles links and entries that are neither file nor folder; the owner of the folder's files."""
        skill_links = [name for name in listing.links if is_skill_file(name)]
        if skill_links and listing.skill and owner is not None:
            owner.note("two_skill_files")
        elif skill_links and (linked := linked_skill(self.tree, folder, skill_links)):
            owner = self.tree.owners[folder] = linked
        self.tree.links.extend(Link(folder, name, owner) for name in listing.links if name not in skill_links)
        for kind, name, is_file in listing.oddities:
            if not is_file:
                self.tree.report(kind, f"{path}/{name}")
            elif owner is not None:
                owner.note(f"bundled_{kind}")
        return owner


def _add_files(owner: Owner, within: str, path: str, names: Sequence[str]) -> None:
    prefix = f"{within}/" if within else ""
    for name in names:
        try:
            stat = os.lstat(f"{path}/{name}")
        except FileNotFoundError:
            continue  # gone since its folder was listed: simply not there any more
        except OSError:
            owner.note("bundled_unreadable")
            continue
        mode = stat.st_mode
        if modes.S_ISREG(mode):
            key = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
            owner.files.append((prefix + name, key, bool(mode & 0o111)))


def _finished(scan: _Scan, cache: WalkCache | None, started: int) -> Walk:
    tree = scan.tree
    kept = sorted(tree.owners)
    if not scan.globs.keeps_all:
        kept = [folder for folder in kept if scan.globs.keeps(folder)]
    same = cache is not None and scan.listed == 0 and len(tree.listings) == len(cache.listings)
    skills = [_skill_folder(tree, tree.owners[folder]) for folder in kept if tree.owners[folder].path]
    skills.sort(key=attrgetter("folder"))  # in order already, but for the source's own folder
    return Walk(
        skills=skills,
        problems=sorted(tree.problems, key=lambda found: (found.where, found.kind)),
        cache=cache if cache is not None and same else WalkCache.of(tree.root, started, tree.listings),
        excluded=len(tree.owners) - len(kept),
        listed=scan.listed,
        started_ns=started,
    )


def _skill_folder(tree: Tree, owner: Owner) -> SkillFolder:
    aliases = tree.aliases.get(owner.folder) if tree.aliases else None
    if len(owner.files) > 1:
        owner.files.sort()
    return SkillFolder(
        owner.folder or ROOT,
        owner.path,
        owner.stat,
        tuple(owner.files),
        tuple(sorted(aliases)) if aliases else (),
        owner.diagnostics,
    )
