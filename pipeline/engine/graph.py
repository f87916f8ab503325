"""The bridge to doit: tasks as dictionaries, a content checker, and a run that keeps the account.

doit decides which tasks run and in which order. Its database is a cache: when it is lost or damaged, tasks run again and
find their items in the memo.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sqlite3
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from doit.cmd_base import ModuleTaskLoader
from doit.dependency import FileChangedChecker
from doit.doit_cmd import DoitMain
from doit.exceptions import BaseFail, TaskFailed
from doit.reporter import ZeroReporter

from pipeline import resources
from pipeline.engine import files
from pipeline.engine.build import Build
from pipeline.errors import BuildError
from pipeline.settings import load_settings
from serve.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from doit.task import Task

_current: ContextVar[Build | None] = ContextVar("build", default=None)

TaskDict = dict[str, Any]


class ContentChecker(FileChangedChecker):  # type: ignore[misc]  # doit ships no types
    """Whether a file's content changed, by blake3. Times are not trusted: a file may change within one tick."""

    digests: files.Digests  # the run's own, put in by `doit_config`

    def check_modified(self, file_path: str, file_stat: os.stat_result, state: str) -> bool:  # noqa: ARG002 - doit's signature
        """Whether the content differs from the digest saved after the task's last run."""
        return self.digests.of(file_path) != state

    def get_state(self, dep: str, current_state: str | None) -> str | None:
        """The digest to save, or None when it is the saved one."""
        digest = self.digests.of(dep)
        return None if digest == current_state else digest


def current_build() -> Build:
    """The build this process is running, or one from the environment when doit itself was started."""
    build = _current.get()
    return build if build is not None else Build(load_settings())


class Tasks:
    """Makes doit tasks of the modules in `pipeline.tasks`.

    Such a module has `run(build, *source)`, `settings(build, *source)` with the digests of code and configuration it depends
    on, and, where a task must look beyond its files, `intact(build, *source)`.
    """

    def __init__(self, build: Build) -> None:
        self.build = build

    def __call__(
        self,
        module: ModuleType,
        source: str | None = None,
        *,
        reads: Sequence[Path] = (),
        writes: Sequence[Path] = (),
        after: Sequence[str] = (),
    ) -> TaskDict:
        """The task of a module for one source, or for all: it runs when an input, a setting or a result is not as it was.

        reads: files of earlier tasks. writes: its own files, checked by content. after: tasks that have to come before it.
        """
        build = self.build
        arguments = () if source is None else (source,)
        checks: list[object] = [_Unchanged(build, module.settings(build, *arguments), writes)]
        if hasattr(module, "intact"):
            checks.append(_checked(partial(module.intact, build, *arguments)))
        made: TaskDict = {
            "actions": [(_guarded, [build, module.run, arguments])],
            "file_dep": [str(path) for path in reads],
            "targets": [str(path) for path in writes],
            "task_dep": list(after),
            "uptodate": checks,
            "teardown": [build.settle],
            "verbosity": 2,
        }
        return made if source is None else {"name": source, **made}


def _checked(current: Callable[[], bool]) -> Callable[[], bool]:
    """A condition as doit asks it. One that cannot be answered is not met: the task then runs into the same error and tells it."""

    def check() -> bool:
        try:
            return current()
        except OperatorError:
            return False

    return check


class _Unchanged:
    """An `uptodate` check: settings and the task's own files are as the last run left them."""

    def __init__(self, build: Build, settings: Sequence[str], writes: Sequence[Path]) -> None:
        self.digests = build.digests
        self.settings = list(settings)
        self.writes = writes

    def __call__(self, task: Task, values: Mapping[str, object]) -> bool:
        task.value_savers.append(self.state)
        return values.get("state") == self.state()["state"]

    def state(self) -> dict[str, list[str]]:
        """What is saved with the task."""
        digests = [self.digests.of(path) if path.is_file() else "" for path in self.writes]
        return {"state": self.settings + digests}


def _guarded(build: Build, run: Callable[..., None], arguments: tuple[object, ...]) -> TaskFailed | None:
    """Run a task; an error with a remedy fails the task without a traceback and is kept for whoever started the run."""
    build.writer()
    try:
        run(build, *arguments)
    except OperatorError as error:
        return _failed(build, error)
    except OSError as error:
        where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(build.paths.data)
        return _failed(
            build, BuildError(f"the system refused: {error.strerror or error}", where=where, next_step=_SYSTEM)
        )
    except sqlite3.Error as error:
        return _failed(build, BuildError(f"a database failed: {error}", where=str(build.paths.data), next_step=_SYSTEM))
    return None


def _failed(build: Build, error: OperatorError) -> TaskFailed:
    build.errors.append(error)
    return TaskFailed(str(error))


_SYSTEM = (
    "look after free space and permissions there (`retrieval doctor`), then build again: what was finished is kept"
)


class AccountReporter(ZeroReporter):  # type: ignore[misc]  # doit ships no types
    """Silent; counts per step how many tasks ran and how many were current, and keeps unexpected failures."""

    build: Build
    crashes: list[BaseFail]

    def _step(self, task: Task) -> str:
        return str(task.name).partition(":")[0]

    def execute_task(self, task: Task) -> None:
        """A task is about to run."""
        if task.actions:
            self.build.report.step(self._step(task)).tasks_run += 1

    def skip_uptodate(self, task: Task) -> None:
        """A task is current."""
        self.build.report.step(self._step(task)).tasks_current += 1

    def add_failure(self, task: Task, fail: BaseFail) -> None:  # noqa: ARG002 - doit's signature
        """A task failed: with a remedy (kept by the task) or by a fault of ours."""
        if not isinstance(fail, TaskFailed):
            self.crashes.append(fail)

    def runtime_error(self, msg: str) -> None:
        """doit's own complaints, for example about a missing input."""
        self.crashes.append(TaskFailed(msg))


def doit_config(build: Build) -> dict[str, object]:
    """What dodo.py hands to doit: where its cache lies and how files are compared."""
    dep_file = build.paths.build / "doit.json"
    build.paths.claim()
    dep_file.parent.mkdir(parents=True, exist_ok=True)
    _drop_damaged(dep_file)
    return {
        "default_tasks": ["publish"],
        "dep_file": str(dep_file),
        "backend": "json",
        # doit makes the checker itself, and saves its class's name: the run's digests travel in a subclass of that name.
        "check_file_uptodate": type("ContentChecker", (ContentChecker,), {"digests": build.digests}),
        "verbosity": 2,
    }


def _drop_damaged(dep_file: Path) -> None:
    if not dep_file.exists():
        return
    try:
        json.loads(dep_file.read_bytes())
    except ValueError:
        dep_file.unlink()


@contextmanager
def _as_current(build: Build) -> Iterator[None]:
    token = _current.set(build)
    try:
        yield
    finally:
        _current.reset(token)


def load_dodo(build: Build) -> dict[str, Any]:
    """The task generators of dodo.py, bound to `build`."""
    with _as_current(build):
        return runpy.run_path(str(resources.bundled("dodo.py")))


@contextmanager
def _without_collector() -> Iterator[None]:
    """No cyclic garbage collection: steps make many small rows and no cycles, and looking through them costs a third."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _note_configuration(build: Build) -> None:
    """Say when the index was made by another configuration: its sources leave with this build."""
    path, now = build.paths.build / "built-from", str(build.settings.config_file or "")
    before = path.read_bytes().decode("utf-8", "surrogateescape") if path.is_file() else now
    if before != now:
        build.report.notes.append(f"the index was last built from {before}; now it follows {now}")
    files.write(path, now.encode("utf-8", "surrogateescape"))


def _preflight(build: Build) -> None:
    """Read what every task depends on, so that a mistake in it is one error and not doit's traceback."""
    build.paths.refuse_links()
    build.vocabulary, build.identity, build.store_info  # noqa: B018 - read for their errors


def run(build: Build, tasks: Sequence[str] = ("publish",)) -> None:
    """Bring tasks up to date under the writer lock. Raises the first error a task met; the account is in build.report."""
    build.writer()
    if build.lock.inherited:
        files.sweep_parts(build.paths.data)
        build.lock.inherited = False
    _preflight(build)
    _note_configuration(build)
    namespace = load_dodo(build)
    crashes: list[BaseFail] = []
    reporter = type("Reporter", (AccountReporter,), {"build": build, "crashes": crashes})
    namespace["DOIT_CONFIG"] = {**namespace["DOIT_CONFIG"], "reporter": reporter}
    with _as_current(build), _without_collector():
        code = DoitMain(ModuleTaskLoader(namespace), config_filenames=()).run(["run", *tasks])
    build.settle()
    if build.errors:
        raise build.errors[0]
    if crashes:
        raise RuntimeError(str(crashes[0]))
    if code:
        raise OperatorError(f"the build stopped with doit's code {code}", next_step="run `retrieval doctor`")
