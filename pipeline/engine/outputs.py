"""Owned files: a folder of generated pages kept as it should be, with a ledger of what each page was made from.

A page that somebody edited, removed or added by hand is noticed by its stat and put right in the same run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pipeline.engine import faults, files, manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from pipeline.engine.report import StepCount


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A ledger row: id is the page's path relative to the catalog; key what it was made from; stamp its stat when written."""

    id: str
    key: str
    stamp: tuple[int, int, int]


class Wanted(NamedTuple):
    """A page that should exist: what makes it, and how."""

    key: str
    make: Callable[[], str]


class Change(NamedTuple):
    """What `bring` did: pages made, and the paths that it wrote and removed."""

    made: list[str]
    written: list[str]
    removed: list[str]


def intact(root: Path, ledger: Path) -> bool:
    """Whether each page of a ledger is on disk as it was written."""
    try:
        pages = msgspec.json.Decoder(Page).decode_lines(ledger.read_bytes())
        base = f"{root}{os.sep}"
        return all(_stamp(base + page.id) == page.stamp for page in pages)
    except (OSError, msgspec.MsgspecError):
        return False


def foresee(root: Path, ledger: Path, wanted: Mapping[str, Wanted], count: StepCount) -> None:
    """Count what `bring` would make and remove, touching nothing."""
    old = {page.id: page for page in manifest.previous(ledger, Page)}
    kept = [p for p, w in wanted.items() if p in old and old[p].key == w.key and _sound(root / p, old[p].stamp)]
    count.reused += len(kept)
    count.executed += len(wanted) - len(kept)
    count.removed += len(old.keys() - wanted.keys())


def bring(root: Path, ledger: Path, wanted: Mapping[str, Wanted], count: StepCount) -> Change:
    """Make, rewrite and remove pages until exactly `wanted` (by relative path) is there of what the ledger owns."""
    old = {page.id: page for page in manifest.previous(ledger, Page)}
    pages, change = [], Change([], [], [])
    for path, want in wanted.items():
        page = old.get(path)
        if page is not None and page.key == want.key and _sound(root / path, page.stamp):
            pages.append(page)
            count.reused += 1
            continue
        change.made.append(path)
        count.executed += 1
        if files.write(root / path, want.make().encode("utf-8")):
            change.written.append(path)
            faults.reach("catalog:page")
        pages.append(Page(id=path, key=want.key, stamp=_stamp(root / path)))
    change.removed.extend(_remove(root, old.keys() - wanted.keys()))
    manifest.store(ledger, pages)
    count.written += len(change.written)
    count.removed += len(change.removed)
    return change


def strangers(root: Path, ledgers: Iterable[Path]) -> list[str]:
    """Pages below `root` that no ledger owns, as relative paths."""
    return unknown_pages(root, {page.id for ledger in ledgers for page in manifest.previous(ledger, Page)})


def unknown_pages(root: Path, known: AbstractSet[str]) -> list[str]:
    """Markdown files below `root` (dot folders aside) that are not among `known`, as relative paths."""
    found = []
    stack = [(str(root), "")]
    while stack:
        folder, relative = stack.pop()
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith("."):
                    stack.append((entry.path, f"{relative}{entry.name}/"))
            elif entry.name.endswith(".md"):
                found.append(f"{relative}{entry.name}")
    found.sort()
    return [path for path in found if path not in known]


def drop(root: Path, ledger: Path) -> list[str]:
    """Remove all pages of a ledger and the ledger itself."""
    removed = _remove(root, [page.id for page in manifest.previous(ledger, Page)])
    ledger.unlink(missing_ok=True)
    return removed


def _remove(root: Path, paths: Iterable[str]) -> list[str]:
    removed = []
    for path in sorted(paths):
        target = root / path
        if target.is_file():
            target.unlink()
            removed.append(path)
        folder = target.parent
        while folder != root and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent
    return removed


def _stamp(path: Path | str) -> tuple[int, int, int]:
    stat = os.stat(path)
    return (stat.st_size, stat.st_mtime_ns, stat.st_ino)


def _sound(path: Path, stamp: tuple[int, int, int]) -> bool:
    try:
        return _stamp(path) == stamp
    except OSError:
        return False
