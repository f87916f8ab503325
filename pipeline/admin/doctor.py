"""Doctor: is everything there that a build and a query need? Each check says what it saw, and what to do when it is not well."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from serve.errors import ExitCode, NoIndexError, OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pipeline.engine.build import Build
    from pipeline.settings import Settings

_LITTLE = 200 * 2**20  # bytes


class Check(NamedTuple):
    """One finding. result: ok, warn, fail, or info for what is optional or merely so. code: what a failure exits with."""

    name: str
    result: str
    detail: str
    next_step: str = ""
    where: str = ""
    code: ExitCode = ExitCode.FAILED

    def as_dict(self) -> dict[str, str]:
        """The finding as `--json` prints it."""
        return {
            "name": self.name,
            "result": self.result,
            "detail": self.detail,
            "where": self.where,
            "next": self.next_step,
        }


def examine(config: str = "") -> list[Check]:
    """Run all checks, each on its own: one that fails hides none of the others."""
    checks = _interpreter()
    settings = _settings(config, checks)
    if settings is not None:
        checks += guarded("sources", lambda: _sources(settings))
        checks += guarded("data directory", lambda: [_data_dir(settings.data_dir)])
        checks += _of_build(settings)
    command = settings.iwe_command if settings is not None else ""
    checks += [program("iwe", command or "iwe", "the catalog can be read without it", "RETRIEVAL_IWE_COMMAND")]
    if settings is not None:
        from pipeline.admin import serving

        checks += serving.examine(config)
    return checks


def _interpreter() -> list[Check]:
    fits = (3, 11) <= sys.version_info[:2] < (3, 14)
    remedy = "" if fits else "use Python 3.11, 3.12 or 3.13"
    return [
        Check("Python", "ok" if fits else "fail", f"{sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}", remedy),
    ]


def _settings(config: str, checks: list[Check]) -> Settings | None:
    from pipeline.settings import load_settings

    try:
        settings = load_settings(config or None)
    except OperatorError as error:
        checks.append(_failed("configuration", error))
        return None
    checks.append(Check("configuration", "ok", str(settings.config_file)))
    checks += [Check("environment", "ok", f"variables from {file}") for file in settings.env_files]
    checks += [Check("configuration", "warn", item.what, item.next_step, item.where) for item in settings.warnings]
    return settings


def _sources(settings: Settings) -> Iterator[Check]:
    for source in settings.sources:
        name = f"source {source.name}"
        if not source.enabled:
            yield Check(name, "info", "switched off")
        elif not source.path.is_dir():
            yield Check(
                name, "warn", f"{source.path} is not there", "create or mount it, or correct the path", source.where
            )
        elif not os.access(source.path, os.R_OK | os.X_OK):
            yield Check(
                name, "fail", f"{source.path} cannot be read", "give this user the right to read it", source.where
            )
        else:
            held = f"{source.state}{' of ' + source.harness if source.harness else ''}"
            yield Check(name, "ok", f"{source.path} ({held if source.kind == 'skills' else source.kind})")


def _data_dir(path: Path) -> Check:
    existing = path
    while not existing.exists():
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        reason = (error.strerror or "").lower()
        return Check(
            "data directory", "fail", f"{existing} cannot be written to: {reason}", "name another with RETRIEVAL_HOME"
        )
    free = shutil.disk_usage(existing).free
    detail = f"{path}, {free // 2**20} MiB free"
    if free < _LITTLE:
        return Check("data directory", "warn", detail, "free some space: an index of 10,000 skills takes about 300 MiB")
    return Check("data directory", "ok", detail)


def _of_build(settings: Settings) -> list[Check]:
    from pipeline.engine.build import Build

    build = Build(settings)
    try:
        return [
            *guarded("taxonomy", lambda: [_taxonomy(build)]),
            *guarded("overrides", lambda: _overrides(build)),
            *guarded("writer lock", lambda: _lock(build)),
            *guarded("embedder", lambda: [_embedder(build)]),
            *guarded("vector store", lambda: [_store(build)]),
            *guarded("index", lambda: [_index(build)]),
        ]
    finally:
        build.close()


def _taxonomy(build: Build) -> Check:
    return Check("taxonomy", "ok", f"{len(build.taxonomy.categories)} categories, {build.settings.taxonomy_path}")


def _overrides(build: Build) -> Iterator[Check]:
    from pipeline.admin import account

    path = build.settings.overrides_path
    if not path.is_file():
        return
    lost = account.unmatched_overrides(build)
    yield from (Check("overrides", "warn", item.what, item.next_step, item.where) for item in lost)
    if not lost:
        yield Check("overrides", "ok", f"{len(build.overrides.skills)} skills, {path}")


def _lock(build: Build) -> Iterator[Check]:
    from pipeline.admin import account

    holder = account.holder(build)
    if holder:
        yield Check("writer lock", "info", f"held by process {holder.get('pid') or 'unknown'}: a build is running")


def _embedder(build: Build) -> Check:
    from serve.embedder import open_embedder

    config = build.embedder_config
    if config.cache_dir is not None and not config.cache_dir.exists():
        config = msgspec.structs.replace(config, cache_dir=None)  # a check leaves no cache where there was none
    embedder = open_embedder(config)
    try:
        vector = embedder.query("how do I check that everything works")
    finally:
        embedder.close()
    return Check(
        "embedder", "ok", f"{embedder.identity.model} ({embedder.identity.kind}) gives {len(vector)} numbers a text"
    )


def _store(build: Build) -> Check:
    from pipeline.chroma import fingerprint
    from pipeline.tasks import embed, upsert

    fingerprint(build.chroma, embed.identity_key(build))  # raises when a server cannot be reached
    detail = upsert.describe(build)
    well = upsert.intact(build)
    return Check("vector store", "ok" if well else "warn", detail, "" if well else "run `retrieval build`")


def _index(build: Build) -> Check:
    from serve.snapshot import Live

    try:
        snapshot = Live(build.paths.data).current()
    except NoIndexError as error:
        return Check("index", "warn", error.what, error.next_step)
    snapshot.close()
    return Check("index", "ok", f"{len(snapshot)} skills, generation {snapshot.generation[:8]}")


def program(name: str, command: str, without: str, variable: str) -> Check:
    """Whether an optional program runs, and its version. variable: what names another; without: how things go on without it."""
    found = shutil.which(command)
    if not found and command != name:
        return Check(name, "warn", f"{command} is not a program", f"correct {variable}; {without}")
    if not found:
        return Check(name, "info", f"not installed; {without}")
    try:
        done = subprocess.run(
            [found, "--version"], capture_output=True, timeout=10, check=True, encoding="utf-8", errors="replace"
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Check(name, "warn", f"{found} does not run: {error}", f"repair or remove it; {without}")
    said = done.stdout.strip().splitlines()
    return Check(name, "ok", f"{said[0] if said else 'installed'}, {found}")


def guarded(name: str, check: Callable[[], Iterable[Check]]) -> list[Check]:
    """The findings of a check, or what kept it from being made."""
    try:
        return list(check())
    except OperatorError as error:
        return [_failed(name, error)]
    except (OSError, sqlite3.Error) as error:
        return [Check(name, "fail", str(error), "see the path named")]


def _failed(name: str, error: OperatorError) -> Check:
    return Check(name, "fail", error.what, error.next_step, error.where, error.code)
