"""The names that a harness already lists by itself, so that no copy takes one of them.

Hermes looks below its folders at any depth, finds a skill by its folder, by the name in its head, and by the name of any
loose Markdown file; the other harnesses look one level deep. What was read is remembered by the times of folders and files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from serve.harnesses import harness as harness_named
from serve.projection import foreign_config, frontmatter
from serve.projection.layout import MARKER, SKILL_FILE
from serve.projection.names import key
from serve.projection.package import RACY_NS

MAX_FOLDERS = 20_000
_HEAD_BYTES = 16 << 10
# What Hermes leaves out everywhere, and right below a skill.
HERMES_IGNORED = frozenset(
    {".git", ".github", ".hub", ".archive", ".venv", "venv", "node_modules", "site-packages", "__pycache__"}
    | {".tox", ".nox", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
)
HERMES_SUPPORT = frozenset({"references", "templates", "assets", "scripts"})
_PROJECT = {
    "omp": (".omp/skills", ".agents/skills", ".claude/skills", ".github/skills"),
    "claude": (".claude/skills",),
    "codex": (".codex/skills", ".agents/skills"),
    "opencode": (".opencode/skill", ".opencode/skills", ".claude/skills", ".agents/skills"),
    "gemini": (".gemini/skills", ".agents/skills"),
}


class Names(NamedTuple):
    """keys: of folders and names of skills. exact: the names as they are written. loose: names of Markdown files, without
    ".md", that Hermes would take for skills.
    """

    keys: set[str]
    exact: set[str]
    loose: set[str]


class _Folder(NamedTuple):
    """What was seen of a folder, and its times then. marked: whether it has the marker of a projection."""

    times: tuple[int, int, int]
    folders: tuple[str, ...]
    skill: bool
    marked: bool
    loose: tuple[str, ...]


_folders: dict[tuple[str, bool], _Folder] = {}
_heads: dict[str, tuple[tuple[int, int, int], str]] = {}
_lock = Lock()


def names(harness: str, lane: Path) -> Names:
    """The names that a harness lists itself, from all its homes and, for most, from the current project.

    lane: what leads there is no skill of the harness's own.
    """
    found = Names(set(), set(), set())
    deep = harness == "hermes"
    with _lock:
        if len(_folders) > MAX_FOLDERS:
            _folders.clear()
            _heads.clear()
        for root in roots(harness):
            _gather(root, found, lane, deep=deep)
    return found


def roots(harness: str) -> list[str]:
    """The folders in which a harness looks for skills of its own. Some may not exist."""
    home = os.path.expanduser("~")
    listed = [folder.replace("~", home, 1) for folder in harness_named(harness).own_skills]
    if harness == "hermes":
        listed = [*listed, *_hermes_roots(home)]
    if harness == "omp":
        agent = os.environ.get("PI_CODING_AGENT_DIR", "")
        homes = [os.path.join(home, ".omp", "agent"), *_children(os.path.join(home, ".omp", "profiles"), "agent")]
        for place in [*homes, agent] if agent else homes:
            listed.append(os.path.join(place, "skills"))
            listed += foreign_config.folders(os.path.join(place, "config.yml"), "customDirectories", place)
    if harness == "claude" and os.environ.get("CLAUDE_CONFIG_DIR"):
        listed.append(os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "skills"))
    if harness == "codex" and os.environ.get("CODEX_HOME"):
        listed.append(os.path.join(os.environ["CODEX_HOME"], "skills"))
    listed += _project_roots(_PROJECT.get(harness, ()))
    return list(dict.fromkeys(map(os.path.abspath, listed)))


def _hermes_roots(home: str) -> Iterator[str]:
    """The skills of the default home and of every profile: all of them share one lane."""
    chosen = os.environ.get("HERMES_HOME") or os.path.join(home, ".hermes")
    above, name = os.path.split(os.path.abspath(os.path.expanduser(chosen)))
    base = os.path.dirname(above) if os.path.basename(above) == "profiles" else os.path.join(above, name)
    tops = [base, os.path.join(home, ".hermes")]
    if os.environ.get("LOCALAPPDATA"):
        tops.append(os.path.join(os.environ["LOCALAPPDATA"], "hermes"))
    homes = [chosen]
    for top in tops:
        homes += [top, *_children(os.path.join(top, "profiles"), "")]
    for place in dict.fromkeys(homes):
        yield os.path.join(place, "skills")
        yield from foreign_config.folders(os.path.join(place, "config.yaml"), "external_dirs", place)


def _project_roots(below: tuple[str, ...]) -> Iterator[str]:
    try:
        here = Path.cwd()
    except OSError:
        return
    if below:
        for folder in (here, *here.parents):
            yield from (str(folder / name) for name in below)


def _children(folder: str, below: str) -> list[str]:
    try:
        return [os.path.join(folder, name, below) for name in sorted(os.listdir(folder))]
    except OSError:
        return []


def _gather(root: str, found: Names, lane: Path, *, deep: bool) -> None:
    """Add the names below a root. Linked folders are followed, as harnesses do, but none is entered twice."""
    entered = {} if (mark := _mark(lane)) is None else {mark: False}  # the lane itself, and which folders are skills
    stack = [(root, 0)]
    while stack and len(entered) < MAX_FOLDERS:
        path, depth = stack.pop()
        try:
            stat = os.stat(path)
        except OSError:
            continue
        mark = (stat.st_dev, stat.st_ino)
        if mark in entered:
            if entered[mark]:
                _add((os.path.basename(path),), found)  # the same skill by another name
            continue
        seen = _listed(path, stat, deep=deep)
        entered[mark] = seen is not None and seen.skill and depth > 0 and not (seen.marked and _lies_in(path, lane))
        if seen is None or (seen.skill and depth and not entered[mark]):
            continue
        if entered[mark]:
            _add(names_of(path), found)
        found.loose.update(seen.loose)
        if seen.folders and (deep or not depth):
            support = HERMES_SUPPORT if deep and seen.skill else frozenset()
            stack.extend([(f"{path}{os.sep}{name}", depth + 1) for name in seen.folders if name not in support])


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return (stat.st_dev, stat.st_ino)


def _lies_in(path: str, lane: Path) -> bool:
    return os.path.dirname(os.path.realpath(path)) == os.path.realpath(lane)


def names_of(path: str) -> tuple[str, ...]:
    """The names that a skill's folder answers to: its own, and the one in the head of its SKILL.md."""
    name = _name_in(f"{path}{os.sep}{SKILL_FILE}")
    own = os.path.basename(path)
    return (own,) if name in {"", own} else (own, name)


def loose_names(paths: Sequence[str], harness: str) -> set[str]:
    """The names, without ".md", of those files of a package that Hermes would take for skills; none for the others."""
    if harness != "hermes":
        return set()
    return {
        path.rpartition("/")[2][:-3]
        for path in paths
        if path.endswith(".md") and path != SKILL_FILE and path.partition("/")[0] not in HERMES_SUPPORT
    }


def clash(names: Iterable[str], own: Names) -> bool:
    """Whether one of the names is too much like one of the harness's own."""
    return any(key(name) in own.keys or name in own.loose for name in names)


def _add(some: Iterable[str], found: Names) -> None:
    for name in some:
        if name not in found.exact:
            found.exact.add(name)
            found.keys.add(key(name))


def _listed(path: str, stat: os.stat_result, *, deep: bool) -> _Folder | None:
    times = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
    known = _folders.get((path, deep))
    if known is not None and known.times == times:
        return known
    folders, loose, skill, marked = [], [], False, False
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name == "SKILL.md":
                    skill = True
                elif entry.name == MARKER:
                    marked = True
                elif entry.name.endswith(".md"):
                    loose.append(entry.name[:-3])
                elif entry.name not in HERMES_IGNORED and entry.is_dir():
                    folders.append(entry.name)
    except OSError:
        return None
    seen = _Folder(times, tuple(folders), skill, marked, tuple(loose) if deep else ())
    if time.time_ns() - max(times[:2]) > RACY_NS:
        _folders[path, deep] = seen
    return seen


def _name_in(path: str) -> str:
    """The name in the head of a SKILL.md, "" for none or one that cannot be told."""
    try:
        stat = os.stat(path)
        times = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known = _heads.get(path)
        if known is not None and known[0] == times:
            return known[1]
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb", buffering=0) as file:
            data = file.read(_HEAD_BYTES)
            head = frontmatter.read(data.decode("utf-8", "replace"))
            if head.start is None and len(data) == _HEAD_BYTES:
                data += file.read(frontmatter.HEAD)
                head = frontmatter.read(data.decode("utf-8", "replace"))
    except OSError:
        return ""
    name = head.name or ""
    _heads[path] = (times, name)
    return name
