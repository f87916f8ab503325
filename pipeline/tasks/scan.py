"""Scan a source: walk it, read and hash what is new or changed, and say what could not be indexed.

Two caches make a scan of an unchanged source as cheap as asking the file system for its stats: the walk remembers folders, and here
each skill is remembered by a signature over its files' names, sizes, times and inodes. A file that was touched less than two
seconds before the last scan might have changed again within the same tick, so it is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pipeline.engine import faults, files, manifest
from pipeline.engine.items import Item, Resolver
from pipeline.model import Found, Problem, Reading
from pipeline.sources.listing import WalkCache
from pipeline.sources.problems import os_problem
from pipeline.sources.skills import SkillFolder, Walk, walk
from pipeline.steps.select import packed
from pipeline.tasks import texts

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from pipeline.engine.workers import Workers
    from pipeline.settings import Source

RACY_NS = 2_000_000_000
CHUNK = 512

Begun = Callable[[], tuple[list[Found], set[str]]]

_pack = msgspec.msgpack.Encoder()


class Memory(msgspec.Struct):
    """What a scan leaves for the next one. token: over all that the walk saw; output: digests of what was written."""

    walk: bytes = b""
    code: str = ""
    token: str = ""
    output: str = ""
    racy: set[str] = set()


class Read(NamedTuple):
    """A skill whose files were read: the digest of its SKILL.md, its text, and what the package amounts to."""

    folder: SkillFolder
    data: bytes
    digest: str
    package_digest: str
    size: int


def settings(build: Build, name: str) -> list[str]:
    """Digests of the reader's code and of what the configuration says of the source."""
    source = build.source(name)
    limits = build.settings.limits
    return [texts.code_digest("scan"), repr((source.path, source.include, source.exclude, limits.skill_bytes))]


def intact(build: Build, name: str) -> bool:
    """False, since only the walk can tell; but a source that was not asked for is left as it is."""
    return bool(build.only) and name not in build.only


def run(build: Build, name: str) -> None:
    """Bring the scan manifest and the list of problems of a source up to date."""
    source = build.source(name)
    with build.report.timing("scan") as count:
        memory = _remembered(build, source)
        seen = _walk(build, source, memory)
        token = files.digest(_pack.encode((settings(build, name), seen.skills, seen.problems)))
        if memory.token == token and not memory.racy and memory.output == _output(build, source):
            count.reused += len(seen.skills)
            if seen.listed:
                _remember(build, source, msgspec.structs.replace(memory, walk=seen.cache.dump()))
            build.report.problems += manifest.load(build.paths.problems(source.name), Problem)
            return
        lost = _lost(source, seen)
        rows, problems, marks = _kept(build, source, lost) if lost else _rows(build, source, seen, memory)
        manifest.store(build.paths.manifest("scan", source.name), rows)
        if (
            marks is not None
        ):  # after the rows: marks of files beside rows from before they changed would vouch for those
            files.write(_signature_path(build, source), _pack.encode(marks))
        problems.sort(key=lambda row: (row.where, row.kind))
        manifest.store_lines(build.paths.problems(source.name), problems)
        build.report.problems += problems
        racy = {item.folder for item in seen.skills if _racy(item, seen.started_ns)}
        output = _output(build, source)
        faults.reach("scan:before-cache")
        _remember(build, source, Memory(seen.cache.dump(), texts.code_digest("scan"), token, output, racy))


def _walk(build: Build, source: Source, memory: Memory) -> Walk:
    return walk(
        source.path,
        source=source.name,
        include=source.include,
        exclude=source.exclude,
        cache=WalkCache.load(memory.walk) if memory.walk else None,
        max_bytes=build.settings.limits.skill_bytes,
    )


def _rows(
    build: Build, source: Source, seen: Walk, memory: Memory
) -> tuple[list[Found], list[Problem], dict[str, str] | None]:
    """Manifest rows of all skills that can be read, the problems of the walk and of reading, and the signatures by folder."""
    problems = list(seen.problems)
    old = manifest.previous(build.paths.manifest("scan", source.name), Found)
    marks = {item.folder: files.digest(_pack.encode(item)) for item in seen.skills}
    signatures = _signatures(build, source) if memory.code == texts.code_digest("scan") else {}
    alike = {row.folder: row for row in old if signatures.get(row.folder) == marks.get(row.folder, "")}
    rows = [alike[item.folder] for item in seen.skills if item.folder in alike.keys() - memory.racy]
    build.report.step("scan").reused += len(rows)
    fresh = [item for item in seen.skills if item.folder not in alike or item.folder in memory.racy]
    ran: set[str] = set()
    resolver = Resolver(build.memo, "scan", build.report.step("scan"), build.progress)
    begun: Begun = _nothing
    for start in range(0, len(fresh) + CHUNK, CHUNK):  # once more, for the last one begun
        read = _read(source, fresh[start : start + CHUNK], problems)
        following = _found(build.workers, resolver, source, read, alike)
        made, computed = begun()
        rows += made
        ran |= computed
        begun = following
    for row in problems:
        marks.pop(_folder_of(row, seen), None)
    before, after = ({row.id: f"{row.digest[:12]} {row.package_digest[:12]}" for row in side} for side in (old, rows))
    build.record("scan", before, after, ran)
    return rows, problems, marks


def _lost(source: Source, seen: Walk) -> Problem | None:
    """The problem that says that the source's own folder could not be looked into, if there is one."""
    return next((row for row in seen.problems if row.kind in _LOST and Path(row.where) == source.path), None)


def _kept(build: Build, source: Source, lost: Problem) -> tuple[list[Found], list[Problem], dict[str, str] | None]:
    """What the last scan saw, its signatures too: a folder that is away for a while (a disk, a share) was not emptied."""
    rows = manifest.previous(build.paths.manifest("scan", source.name), Found)
    note = f"{lost.what}; its {len(rows)} skills are kept as they were last seen" if rows else lost.what
    return rows, [msgspec.structs.replace(lost, what=note)], None


_LOST = frozenset({"source_missing", "not_a_folder", "unreadable"})


def _folder_of(problem: Problem, seen: Walk) -> str:
    return next((item.folder for item in seen.skills if item.path == problem.where), "")


def _nothing() -> tuple[list[Found], set[str]]:
    return [], set()


def _read(source: Source, folders: Sequence[SkillFolder], problems: list[Problem]) -> list[Read]:
    """Read the files of some skills; one that cannot be read becomes a problem."""
    read = []
    for folder in folders:
        place = Path(folder.path)
        where = folder.path
        try:
            data = place.read_bytes()
            digest = files.digest(data)
            parts = [digest]
            for name, _stat, executable in folder.files:
                where = str(place.parent / name)
                parts += [name, "x" if executable else "", files.digest_file(where)]
        except OSError as error:
            problems.append(os_problem(source.name, where, error))
            continue
        size = len(data) + sum(stat[0] for _name, stat, _executable in folder.files)
        read.append(Read(folder, data, digest, files.key(*parts), size))
    return read


def read_all(texts_of: Sequence[tuple[bytes, str]]) -> list[bytes]:
    """The encoded Reading of each (bytes of a SKILL.md, name of its folder)."""
    from pipeline.reader import read_skill

    return [manifest.encode(read_skill(data, name)) for data, name in texts_of]


def _found(
    workers: Workers, resolver: Resolver, source: Source, read: Sequence[Read], alike: Mapping[str, Found]
) -> Begun:
    """Begins on the manifest rows of skills that were read; gives them, and the IDs whose text had to be parsed.

    alike: rows of skills whose files have the stats they had; one whose contents are the same too is taken over.
    """
    code = texts.code_digest("scan")
    names = [Path(item.folder.path).parent.name for item in read]
    items = [
        Item(f"{source.name}:{item.folder.folder}", files.key(code, name, item.digest), index)
        for index, (item, name) in enumerate(zip(read, names, strict=True))
    ]
    known = ((item, alike.get(item.folder.folder)) for item in read)
    previous = {row.id: row for item, row in known if row is not None and row.package_digest == item.package_digest}
    decoder = msgspec.json.Decoder(Reading)

    def begin(batch: Sequence[Item]) -> Callable[[], list[bytes]]:
        return workers.start(read_all, [(read[item.place].data, names[item.place]) for item in batch])

    def row_of(item: Item, value: bytes) -> Found:
        return _row(source, item, read[item.place], decoder.decode(value), files.digest(value))

    return resolver.begin(items, previous, row_of, begin)


def _row(source: Source, item: Item, read: Read, reading: Reading, digest: str) -> Found:
    folder = read.folder
    return Found(
        id=item.id,
        source=source.name,
        folder=folder.folder,
        path=folder.path,
        name=reading.name,
        description=reading.description,
        tags=reading.tags,
        categories=reading.categories,
        hidden=reading.hidden,
        digest=read.digest,
        key=item.key,
        reading=digest,
        body_digest=reading.body_digest,
        body_chars=reading.body_chars,
        sketch=packed(reading.sketch),
        package_digest=read.package_digest,
        files=len(folder.files),
        bytes=read.size,
        aliases=folder.aliases,
        diagnostics=(*folder.diagnostics, *reading.diagnostics),
    )


def _racy(item: SkillFolder, started_ns: int) -> bool:
    """Whether a file of a skill was touched so shortly before the walk that it may change once more unseen."""
    bar = started_ns - RACY_NS
    stats = [item.stat, *(stat for _name, stat, _executable in item.files)]
    return any(max(stat[1], stat[2]) >= bar for stat in stats)


def _remembered(build: Build, source: Source) -> Memory:
    try:
        return msgspec.msgpack.decode(build.paths.scan_cache(source.name).read_bytes(), type=Memory)
    except (OSError, msgspec.MsgspecError):
        return Memory()  # none yet, or damaged: everything is read again


def _remember(build: Build, source: Source, memory: Memory) -> None:
    files.write(build.paths.scan_cache(source.name), _pack.encode(memory))


def _signature_path(build: Build, source: Source) -> Path:
    return build.paths.scan_cache(source.name).with_suffix(".signatures")


def _signatures(build: Build, source: Source) -> dict[str, str]:
    try:
        return msgspec.msgpack.decode(_signature_path(build, source).read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError):
        return {}  # as above


def _output(build: Build, source: Source) -> str:
    """A digest over what this task wrote, to notice that somebody else wrote there."""
    paths = (build.paths.manifest("scan", source.name), build.paths.problems(source.name))
    return files.key(*(build.digests.of(path) if path.is_file() else "" for path in paths))
