"""Doctor: is everything there that a build and a query need? Each check says what it saw, and what to do when it is not well."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from serve.errors import OperatorError

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from pipeline.settings import Settings


class Check(NamedTuple):
    """One finding. result: ok, warn, fail, or info for what is optional and absent."""

    name: str
    result: str
    detail: str
    next_step: str = ""


def examine(config: str = "") -> list[Check]:
    """Run all checks, each on its own: one that fails hides none of the others."""
    checks = [_python()]
    settings = _settings(config, checks)
    if settings is not None:
        checks += [Check("configuration", "warn", warning.what, warning.next_step) for warning in settings.warnings]
        checks += _guarded("sources", lambda: _sources(settings))
        checks += _guarded("data directory", lambda: [_data_dir(settings.data_dir)])
        checks += _build_checks(settings)
    checks += [_program("iwe", "RETRIEVAL_IWE_COMMAND", "the catalog can be read without it"), _program("git", "", "not needed to build")]
    return checks


def _python() -> Check:
    version = sys.version.split()[0]
    fits = (3, 11) <= sys.version_info[:2] < (3, 14)
    return Check("Python", "ok" if fits else "fail", version, "" if fits else "use Python 3.11, 3.12 or 3.13")


def _settings(config: str, checks: list[Check]) -> Settings | None:
    from pipeline.settings import load_settings

    try:
        settings = load_settings(config or None)
    except OperatorError as error:
        checks.append(_failed("configuration", error))
        return None
    checks.append(Check("configuration", "ok", str(settings.config_file)))
    return settings


def _sources(settings: Settings) -> Iterator[Check]:
    for source in settings.sources:
        if not source.enabled:
            yield Check(f"source {source.name}", "info", "switched off")
        elif not source.path.is_dir():
            yield Check(f"source {source.name}", "warn", f"{source.path} is not there", "create it, or remove the source")
        elif not os.access(source.path, os.R_OK | os.X_OK):
            yield Check(f"source {source.name}", "fail", f"{source.path} cannot be read", "give this user the right to read it")
        else:
            yield Check(f"source {source.name}", "ok", f"{source.path} ({source.state})")


def _data_dir(path: Path) -> Check:
    existing = path
    while not existing.exists():
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Check("data directory", "fail", f"{existing} cannot be written to ({error.strerror})", "set RETRIEVAL_HOME")
    free = shutil.disk_usage(existing).free
    detail = f"{path}, {free // 2**20} MiB free"
    if free < 200 * 2**20:
        return Check("data directory", "warn", detail, "free some space: an index of 10,000 skills takes about 300 MiB")
    return Check("data directory", "ok", detail)


def _build_checks(settings: Settings) -> list[Check]:
    from pipeline.engine.build import Build

    build = Build(settings)
    try:
        return [
            *_guarded("taxonomy", lambda: [_taxonomy(build)]),
            *_guarded("embedder", lambda: [_embedder(build)]),
            *_guarded("vector store", lambda: [_store(build)]),
            *_guarded("index", lambda: [_index(build)]),
        ]
    finally:
        build.close()


def _taxonomy(build: Build) -> Check:
    taxonomy, _overrides = build.taxonomy, build.overrides
    return Check("taxonomy", "ok", f"{len(taxonomy.categories)} categories, {build.settings.taxonomy_path}")


def _embedder(build: Build) -> Check:
    embedder = build.embedder
    vector = embedder.query("how do I check that everything works")
    embedder.close()
    return Check("embedder", "ok", f"{embedder.identity.model} ({embedder.identity.kind}) gives {len(vector)} numbers a text")


def _store(build: Build) -> Check:
    from pipeline.tasks import upsert

    detail = upsert.describe(build)
    well = detail.endswith("rows")
    return Check("vector store", "ok" if well else "warn", detail, "" if well else "run `retrieval build`")


def _index(build: Build) -> Check:
    from serve.snapshot import Live

    snapshot = Live(build.paths.data).current()
    return Check("index", "ok", f"{len(snapshot)} skills, generation {snapshot.generation[:8]}")


def _program(name: str, variable: str, without: str) -> Check:
    command = (os.environ.get(variable) if variable else "") or shutil.which(name)
    if not command:
        return Check(name, "info", f"not installed; {without}")
    try:
        done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=10, check=True, encoding="utf-8")
    except (OSError, subprocess.SubprocessError) as error:
        return Check(name, "warn", f"{command} does not run: {error}", f"repair or remove it; {without}")
    return Check(name, "ok", done.stdout.strip().splitlines()[0] if done.stdout.strip() else command)


def _guarded(name: str, check: Callable[[], Iterator[Check] | list[Check]]) -> list[Check]:
    try:
        return list(check())
    except OperatorError as error:
        return [_failed(name, error)]
    except OSError as error:
        return [Check(name, "fail", str(error), "see the path named")]


def _failed(name: str, error: OperatorError) -> Check:
    where = f" at {error.where}" if error.where else ""
    return Check(name, "fail", f"{error.what}{where}", error.next_step)
