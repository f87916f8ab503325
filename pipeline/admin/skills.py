"""Skills as a person works with them: all of them in a list, and one that may be edited, with its text kept from loss."""

from __future__ import annotations

import os
import re
import shlex
import stat
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.admin import inspect
from pipeline.engine import files, manifest
from pipeline.model import Categorized, Found, Problem, Selected
from serve.cards import short_digest, slug
from serve.errors import ExitCode, NoIndexError, OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.engine.build import Build
    from pipeline.settings import Source

KEPT = 50  # texts from before an edit that are kept
_LOCKED_STATES = ("native", "archived")
_PROFILE = re.compile(r"/profiles/([a-z0-9][a-z0-9_-]{0,63})/skills(?:/|$)")


class Listed(NamedTuple):
    """One skill of the list. status: indexed, duplicate, suppressed, review or "not built". winner: for a duplicate."""

    id: str
    name: str
    status: str
    state: str
    source: str
    harness: str
    categories: tuple[str, ...]
    path: str
    winner: str


class Filters(NamedTuple):
    """What is listed; an empty filter lets everything through. harness: whose own folders the skills lie in."""

    source: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    harness: tuple[str, ...] = ()


class Editable(NamedTuple):
    """A skill that may be edited. path: its SKILL.md, links resolved. link: the path it is known by, if that is another."""

    id: str
    path: Path
    link: str
    folder: str


class Edited(NamedTuple):
    """What an edit left. kept: the text as it was before, "" when nothing changed. new: diagnostics that were not there."""

    changed: bool
    name: str
    description: str
    diagnostics: tuple[str, ...]
    new: tuple[str, ...]
    kept: str


def listing(build: Build, filters: Filters) -> list[Listed]:
    """The skills that the last build saw, by source in the order of the configuration. Raises OperatorError.

    What could not be indexed at all is no skill yet: see `retrieval status --problems`.
    """
    wanted = {source.name for source in build.settings.pick(filters.source)} if filters.source else None
    if not any(build.paths.manifest("scan", source.name).is_file() for source in build.sources):
        raise NoIndexError("nothing was built yet", where=str(build.paths.data), next_step="run `retrieval build`")
    known = {category.id for category in build.taxonomy.categories} | {"uncategorized"}
    _refuse_unknown("category", filters.category, known)
    rows: list[Listed] = []
    for source in build.sources:
        if (wanted is None or source.name in wanted) and (not filters.harness or source.harness in filters.harness):
            rows += _of_source(build, source)
    return [row for row in rows if _passes(row, filters)]


def counts(rows: Iterable[Listed]) -> dict[str, dict[str, int]]:
    """How many skills there are by status, state, source and category."""
    rows = list(rows)
    by = {key: Counter(getattr(row, key) for row in rows) for key in ("status", "state", "source")}
    by["category"] = Counter(category for row in rows for category in row.categories)
    return {key: dict(sorted(found.items())) for key, found in by.items()}


def editable(build: Build, skill_id: str) -> Editable:
    """The file of a skill that may be edited here. Raises OperatorError when it may not, with who may."""
    known = inspect.find(build, skill_id)
    if isinstance(known, Problem):
        raise OperatorError(f"{known.kind}: {known.what}", where=known.where, next_step=known.next)
    path = Path(os.path.realpath(known.found.path))
    if not path.is_relative_to(os.path.realpath(known.source.path)):
        raise OperatorError(
            "a link that leads out of the source has taken the file's place",
            where=known.found.path,
            next_step="run `retrieval build`, and look at the file",
        )
    owner = _owner(build, known.source, path)
    if owner is not None:
        raise OperatorError(
            f"{skill_id} is {owner.state}: {_whose(owner)}",
            where=str(path),
            next_step=_own_command(owner, path),
            code=ExitCode.USAGE,
        )
    try:
        found = path.stat()
    except OSError as error:
        raise OperatorError(
            f"the file cannot be reached: {error.strerror or error}", where=str(path), next_step="run `retrieval build`"
        ) from error
    # The owner of everything may write a file that nobody may write: the mode says what was meant.
    if not stat.S_ISREG(found.st_mode) or not found.st_mode & 0o222 or not os.access(path, os.W_OK):
        raise OperatorError(
            "the file is read-only",
            where=str(path),
            next_step="give yourself the right to write it, or change it where it comes from",
        )
    return Editable(skill_id, path, "" if str(path) == known.found.path else known.found.path, known.found.folder)


def keep(build: Build, skill: Editable) -> Path:
    """A copy of a skill's text, made before it is edited. The newest KEPT copies stay. Raises OperatorError."""
    folder = build.paths.data / "edited"
    name = f"{slug(skill.folder.rpartition('/')[2] or skill.id)}-{short_digest(skill.id)}"
    copy = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9:09}-{name}.md"
    try:
        files.write(copy, skill.path.read_bytes())
    except OSError as error:
        raise OperatorError(
            f"no copy of the text can be kept: {error.strerror or error}",
            where=str(folder),
            next_step="without one nothing is edited; make room, or name another data directory with RETRIEVAL_HOME",
        ) from error
    for old in sorted(folder.glob("*.md"))[:-KEPT]:
        old.unlink(missing_ok=True)
    return copy


def reviewed(skill: Editable, copy: Path) -> Edited:
    """What the file says now, as the build will read it. The copy goes when nothing changed. Raises OperatorError."""
    from pipeline.reader import read_skill

    before = copy.read_bytes()
    try:
        after = skill.path.read_bytes()
    except OSError as error:
        raise OperatorError(
            f"the edited file cannot be read: {error.strerror or error}",
            where=str(skill.path),
            next_step=f"the text as it was is {copy}",
        ) from error
    folder = skill.folder or skill.path.parent.name
    was, reading = read_skill(before, folder), read_skill(after, folder)
    changed = before != after
    if not changed:
        copy.unlink()
    new = tuple(item for item in reading.diagnostics if item not in was.diagnostics)
    return Edited(changed, reading.name, reading.description, reading.diagnostics, new, str(copy) if changed else "")


def _of_source(build: Build, source: Source) -> list[Listed]:
    selected = {row.id: row for row in manifest.previous(build.paths.manifest("select", source.name), Selected)}
    categorized = {
        row.id: row for row in manifest.previous(build.paths.manifest("categorize", source.name), Categorized)
    }
    rows = []
    for found in manifest.previous(build.paths.manifest("scan", source.name), Found):
        chosen, categories = selected.get(found.id), categorized.get(found.id)
        record = chosen.record if chosen else None
        hidden = "hidden" if source.state == "native" and found.hidden else source.state
        rows.append(
            Listed(
                id=found.id,
                name=found.name,
                status=chosen.status if chosen else "not built",
                state=record.state if record else hidden,
                source=source.name,
                harness=source.harness,
                categories=record.categories if record else categories.categories if categories else (),
                path=found.path,
                winner=chosen.winner if chosen else "",
            )
        )
    return rows


def _passes(row: Listed, filters: Filters) -> bool:
    if filters.state and row.state not in filters.state:
        return False
    return not filters.category or any(category in filters.category for category in row.categories)


def _refuse_unknown(what: str, values: Sequence[str], known: Iterable[str]) -> None:
    names = sorted(known)
    for value in values:
        if value not in names:
            raise OperatorError(
                f"there is no {what} `{value}`", next_step=f"use one of: {', '.join(names)}", code=ExitCode.USAGE
            )


def _owner(build: Build, source: Source, path: Path) -> Source | None:
    """The native or archived source that a file belongs to, also when another source leads there by a link."""
    if source.state in _LOCKED_STATES:
        return source
    for other in build.settings.sources:
        if other.kind == "skills" and other.state in _LOCKED_STATES:
            place = os.path.realpath(other.path)
            if os.path.commonpath([place, path]) == place:
                return other
    return None


def _whose(source: Source) -> str:
    if source.state == "archived":
        return f"put away by {source.harness}" if source.harness else "put away"
    return f"{source.harness or 'a harness'} keeps it itself"


def _own_command(source: Source, path: Path) -> str:
    """How who keeps a skill has it changed."""
    name = shlex.quote(path.parent.name)
    if source.harness == "hermes":
        profile = _PROFILE.search(str(source.path))
        hermes = f"hermes -p {profile[1]}" if profile else "hermes"
        if source.state == "archived":
            return f"bring it back with `{hermes} curator restore {name}`, then change it in Hermes"
        return f"change it in Hermes, which keeps account of it; `{hermes} curator archive {name}` puts it away"
    if source.state == "archived":
        return "move it into a folder of skills that is not archived, and edit it there"
    return f"change it with the means of {source.harness or 'that harness'} itself"
