"""Walks a source of kind "references": which Markdown files it has, chosen by their path below the source alone."""

from __future__ import annotations

import os
import stat as modes
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pipeline.model import Problem
from pipeline.sources.globs import Globs
from pipeline.sources.links import resolve
from pipeline.sources.listing import Listing, WalkCache, collector_paused, is_text
from pipeline.sources.tree import Stat, Tree, stat_key
from serve.ignored import IGNORED

# Not .mdx: that is a program with texts in it, and its imports and tags would be quoted as if they were words.
SUFFIXES = (".md", ".markdown")
MAX_BYTES = 16 << 20


class MarkdownFile(msgspec.Struct, frozen=True, gc=False):
    """One file as the walk found it. path: relative to the source, "/"-separated. file: absolute."""

    path: str
    file: str
    stat: Stat


class Walk(msgspec.Struct, frozen=True):
    """What a walk found, both sorted by path, and the cache for the next walk.

    cache: the very cache the walk was given when nothing has to be remembered anew. listed: how many folders had to be
    listed. started_ns: when the walk began; a file changed less than `listing.RACY_NS` before may change again without a
    trace.
    """

    files: list[MarkdownFile]
    problems: list[Problem]
    cache: WalkCache
    listed: int
    started_ns: int


def is_markdown(name: str) -> bool:
    """Whether a file's name is that of a Markdown file."""
    return name.lower().endswith(SUFFIXES)


def walk(
    root: Path,
    *,
    source: str = "",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    cache: WalkCache | None = None,
    max_bytes: int = MAX_BYTES,
) -> Walk:
    """Finds the Markdown files below `root`. Never raises for what it finds there: that becomes a problem.

    include, exclude: see `globs`; they are compared with a file's path. cache: of an earlier walk; folders whose times
    are unchanged since are not listed again.
    """
    started = time.time_ns()
    shown = os.path.abspath(root)
    usable = cache if cache is not None and cache.root == shown else None
    with collector_paused():
        scan = _Scan(Tree(source, shown, os.path.realpath(shown), max_bytes), Globs(include, exclude), usable)
        scan.run()
        scan.look_at_links()
    tree = scan.tree
    same = usable is not None and scan.listed == 0 and len(tree.listings) == len(usable.listings)
    return Walk(
        files=sorted(scan.files, key=lambda found: found.path),
        problems=sorted(tree.problems, key=lambda found: (found.where, found.kind)),
        cache=usable if usable is not None and same else WalkCache.of(shown, started, tree.listings),
        listed=scan.listed,
        started_ns=started,
    )


class _Scan:
    """Visits every real folder once."""

    def __init__(self, tree: Tree, globs: Globs, cache: WalkCache | None) -> None:
        self.tree = tree
        self.globs = globs
        self.known = cache.listings if cache is not None else {}
        self.files: list[MarkdownFile] = []
        self.links: list[str] = []
        self.listed = 0

    def run(self) -> None:
        """Collects files, links and problems."""
        stack = [""]
        while stack:
            folder = stack.pop()
            listing = self.listing(folder)
            if listing is None:
                continue
            self.tree.listings[folder] = listing
            prefix = f"{folder}/" if folder else ""
            for name in listing.files:
                if self.globs.keeps(prefix + name):
                    self.file(prefix + name)
            self.links += [prefix + name for name in listing.links]
            for kind, name, _is_file in listing.oddities:
                self.tree.report(kind, self.tree.path(folder, name))
            stack.extend(prefix + name for name in listing.folders if not self.globs.excludes(prefix + name))

    def listing(self, folder: str) -> Listing | None:
        """What a folder holds, from memory while its times are unchanged; None when it cannot be had."""
        path = self.tree.path(folder)
        try:
            stat = os.lstat(path) if folder else os.stat(path)
            known, times = self.known.get(folder), (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
            if known is not None and (known.mtime_ns, known.ctime_ns, known.inode) == times:
                return known
            if not modes.S_ISDIR(stat.st_mode) and folder:
                return None  # something else since the folder above it was listed
            self.listed += 1
            return _list(path, stat)
        except OSError as error:
            self.unlisted(folder, path, error)
            return None

    def unlisted(self, folder: str, path: str, error: OSError) -> None:
        """Notes that a folder cannot be had; one that is simply not there any more is no problem."""
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            self.tree.report_error(path, error)
        elif not folder:
            self.tree.report("source_missing" if isinstance(error, FileNotFoundError) else "not_a_folder", path)

    def file(self, path: str) -> None:
        """Notes a file whose path is wanted."""
        place = self.tree.path(path)
        try:
            stat = os.lstat(place)
        except FileNotFoundError:
            return  # gone since its folder was listed: simply not there any more
        except OSError as error:
            self.tree.report_error(place, error)
            return
        if not modes.S_ISREG(stat.st_mode):
            return  # replaced since its folder was listed
        if stat.st_size > self.tree.max_bytes:
            self.tree.report("document_too_large", place)
        else:
            self.files.append(MarkdownFile(path, place, stat_key(stat)))

    def look_at_links(self) -> None:
        """Links are not followed: what they lead to inside the source is found by itself. All others are problems."""
        found = {item.path for item in self.files}
        for path in self.links:
            if self.globs.excludes(path):
                continue
            place = self.tree.path(path)
            target = resolve(self.tree, place)
            wanted = is_markdown(path) and self.globs.keeps(path)
            is_folder = target.stat is not None and modes.S_ISDIR(target.stat.st_mode)
            if target.error is not None and target.kind == "unreadable":
                self.tree.report_error(place, target.error)
            elif target.kind:
                if wanted or is_folder:
                    self.tree.report(target.kind, place)
            elif wanted and not is_folder and target.folder not in found:
                self.tree.report("linked_document", place)


def _list(path: str, stat: os.stat_result) -> Listing:
    """The Markdown files, folders and links of a folder; `stat` was taken before. Raises OSError."""
    files: list[str] = []
    folders: list[str] = []
    links: list[str] = []
    oddities: list[tuple[str, str, bool]] = []
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            if name in IGNORED:
                continue
            if not is_text(name):
                if is_markdown(name) or entry.is_dir(follow_symlinks=False):
                    escaped = os.fsencode(name).decode("utf-8", "backslashreplace")
                    oddities.append(("bad_name", escaped, True))
            elif entry.is_symlink():
                links.append(name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif is_markdown(name):
                if entry.is_file(follow_symlinks=False):
                    files.append(name)
                else:
                    oddities.append(("not_a_document", name, True))
    return Listing(
        stat.st_mtime_ns,
        stat.st_ctime_ns,
        stat.st_ino,
        "",
        False,
        tuple(sorted(files)),
        tuple(sorted(folders)),
        tuple(sorted(links)),
        tuple(sorted(oddities)),
    )
