"""Documents of a source of references: walk it, read and hash what is new or changed, and say what cannot be indexed."""

from __future__ import annotations

import os
import stat as modes
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from pipeline.engine import code, faults, files, manifest
from pipeline.model import Problem
from pipeline.sources.listing import RACY_NS, WalkCache
from pipeline.sources.problems import os_problem, problem
from pipeline.sources.references import MAX_BYTES, MarkdownFile, Walk, walk
from pipeline.sources.tree import Stat
from pipeline.steps import USES
from pipeline.tasks.references.rows import DocumentRow
from serve.decode import is_text

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from pipeline.settings import Source

_LOST = frozenset({"source_missing", "not_a_folder", "unreadable"})
_pack = msgspec.msgpack.Encoder()


class Memory(msgspec.Struct):
    """What a run leaves for the next one. token: over all that the walk saw and the settings. output: digest of what was written.

    stats: of the files in the manifest. racy: those that were touched so shortly before that they may change unseen.
    """

    walk: bytes = b""
    code: str = ""
    token: str = ""
    output: str = ""
    stats: dict[str, Stat] = {}
    racy: set[str] = set()


def settings(build: Build, name: str) -> list[str]:
    """Digests of the step's code and of what the configuration says of the source."""
    source = build.reference(name)
    return [code.digest(USES["document"]), repr((source.path, source.include, source.exclude, MAX_BYTES))]


def intact(build: Build, name: str) -> bool:
    """False, since only the walk can tell; but a source that was not asked for is left as it is."""
    return bool(build.only) and name not in build.only


def run(build: Build, name: str) -> None:
    """Bring the manifest of documents and the list of problems of a source up to date."""
    source = build.reference(name)
    with build.report.timing("document") as count:
        memory = _remembered(build, name)
        seen = _walk(source, memory)
        token = files.digest(_pack.encode((settings(build, name), seen.files, seen.problems)))
        if memory.token == token and not memory.racy and memory.output == _output(build, name):
            count.reused += len(seen.files)
            if seen.listed:
                _remember(build, name, msgspec.structs.replace(memory, walk=seen.cache.dump()))
            build.report.problems += manifest.load(build.paths.problems(name), Problem)
            return
        rows, problems, stats = _rows(build, source, seen, memory)
        manifest.store(build.paths.manifest("document", name), rows)
        problems.sort(key=lambda row: (row.where, row.kind))
        manifest.store_lines(build.paths.problems(name), problems)
        build.report.problems += problems
        racy = {item.path for item in seen.files if max(item.stat[1], item.stat[2]) >= seen.started_ns - RACY_NS}
        faults.reach("document:before-cache")
        made = Memory(seen.cache.dump(), code.digest(USES["document"]), token, _output(build, name), stats, racy)
        _remember(build, name, made)


def _walk(source: Source, memory: Memory) -> Walk:
    return walk(
        source.path,
        source=source.name,
        include=source.include,
        exclude=source.exclude,
        cache=WalkCache.load(memory.walk) if memory.walk else None,
    )


def _rows(
    build: Build, source: Source, seen: Walk, memory: Memory
) -> tuple[list[DocumentRow], list[Problem], dict[str, Stat]]:
    """Rows and problems of a walk, and the stats of the files that have rows."""
    path = build.paths.manifest("document", source.name)
    old = {row.path: row for row in manifest.previous(path, DocumentRow)}
    lost = next((row for row in seen.problems if row.kind in _LOST and Path(row.where) == source.path), None)
    if lost is not None:  # a folder that is away for a while (a disk, a share) was not emptied
        note = f"{lost.what}; its {len(old)} documents are kept as they were last seen" if old else lost.what
        return list(old.values()), [msgspec.structs.replace(lost, what=note)], memory.stats
    known = memory.stats if memory.code == code.digest(USES["document"]) else {}
    count = build.report.step("document")
    problems = list(seen.problems)
    rows: list[DocumentRow] = []
    stats: dict[str, Stat] = {}
    for item in seen.files:
        row = old.get(item.path)
        if row is None or row.file != item.file or item.path in memory.racy or known.get(item.path) != item.stat:
            row = _read(source, item, problems)
        if row is not None:
            rows.append(row)
            stats[item.path] = item.stat
    ran = {row.id for row in rows if row.path not in old or old[row.path].digest != row.digest}
    count.executed += len(ran)
    count.reused += len(rows) - len(ran)
    count.removed += len(old.keys() - {row.path for row in rows})
    before, after = ({row.id: row.digest for row in side} for side in (old.values(), rows))
    build.record("document", before, after, ran)
    return rows, problems, stats


def _read(source: Source, item: MarkdownFile, problems: list[Problem]) -> DocumentRow | None:
    """The row of a file; None for one that cannot be read or is no text, which is a problem."""
    try:
        data = read_bytes(item.file)
    except OSError as error:
        problems.append(os_problem(source.name, item.file, error))
        return None
    if len(data) > MAX_BYTES:
        problems.append(problem("document_too_large", source.name, item.file))
        return None
    if not is_text(data):
        problems.append(problem("not_text", source.name, item.file))
        return None
    digest = blake3(data).hexdigest()
    return DocumentRow(id=f"{source.name}:{item.path}", path=item.path, file=item.file, digest=digest, bytes=len(data))


def read_bytes(file: str) -> bytes:
    """The first MAX_BYTES and one of a regular file's bytes. Raises OSError, also when something else took its place."""
    # Without O_NONBLOCK a pipe put there would hold the build up for ever.
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as opened:
        if not modes.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "no regular file any more", file)
        return opened.read(MAX_BYTES + 1)


def _cache(build: Build, name: str) -> Path:
    return build.paths.build / "document-cache" / f"{name}.bin"


def _remembered(build: Build, name: str) -> Memory:
    try:
        return msgspec.msgpack.decode(_cache(build, name).read_bytes(), type=Memory)
    except (OSError, msgspec.MsgspecError):
        return Memory()  # none yet, or damaged: everything is read again


def _remember(build: Build, name: str, memory: Memory) -> None:
    files.write(_cache(build, name), _pack.encode(memory))


def _output(build: Build, name: str) -> str:
    """A digest over what this task wrote, to notice that somebody else wrote there."""
    paths = (build.paths.manifest("document", name), build.paths.problems(name))
    return files.key(*(build.digests.of(path) if path.is_file() else "" for path in paths))
