"""`retrieval watch`: follows the files in the foreground, or looks after the service that does."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from pipeline.cli import output
from pipeline.cli.common import settings
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from pipeline.watch.install import Done
    from pipeline.watch.options import Options


class Asked(NamedTuple):
    """What is asked for instead of watching, one of the first three at most."""

    install: bool = False
    uninstall: bool = False
    status: bool = False
    dry_run: bool = False


def watch(options: Options, asked: Asked, *, as_json: bool) -> int:
    """Follow the files until a stop is asked for, or do what is asked for instead. Returns the exit code."""
    if asked.install + asked.uninstall + asked.status > 1:
        raise OperatorError(
            "--install, --uninstall and --status exclude each other", next_step="give one of them", code=ExitCode.USAGE
        )
    if asked.dry_run and not (asked.install or asked.uninstall):
        raise OperatorError(
            "--dry-run belongs to --install or --uninstall", next_step="leave it out", code=ExitCode.USAGE
        )
    if asked.status:
        return _status(options, as_json=as_json)
    if asked.install or asked.uninstall:
        return _service(options, asked, as_json=as_json)
    from pipeline.cli.build import summary
    from pipeline.watch.watcher import Voice, watch

    voice = Voice(
        lambda text: _say(text, as_json=as_json),
        lambda error: output.complain(error, as_json=as_json, one_line=as_json),
        _explain,
        summary,
    )
    watch(options, voice)
    return int(ExitCode.OK)


def _say(text: str, *, as_json: bool) -> None:
    """A line with its time, handed on at once: a service's log is read while it runs."""
    if as_json:
        output.emit_line({"at": round(time.time(), 3), "said": text})
    else:
        output.say(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {output.plain(text)}")
        output.flush()


def _explain(error: BaseException) -> OperatorError:
    """What is told of an exception; a fault of the program with its traceback."""
    from pipeline.cli import failures

    shown = failures.explained(error)
    if shown is None:
        output.trace(error)
        return failures.fault(error)
    return shown


def _service(options: Options, asked: Asked, *, as_json: bool) -> int:
    from pipeline.watch import install

    found = install.manager(os.environ)
    if asked.uninstall:
        done = install.uninstall(found, dry_run=asked.dry_run)
    else:
        wanted, notes = install.service(settings(options.config), options.arguments(), os.environ)
        done = install.install(wanted, notes, found, dry_run=asked.dry_run)
    if as_json:
        output.emit({**done._asdict(), "dry_run": asked.dry_run})
    else:
        _print(done, dry_run=asked.dry_run)
    return int(ExitCode.OK)


def _print(done: Done, *, dry_run: bool) -> None:
    for action in done.actions:
        output.say(f"{'would ' if dry_run else ''}{'run ' if ' /' not in action else ''}{output.plain(action)}")
    if dry_run and done.text:
        output.say()
        for line in done.text.splitlines():
            output.say(f"    {output.plain(line)}".rstrip())
        output.say()
    for note in done.notes:
        output.say(f"note: {output.plain(note)}")


def _status(options: Options, *, as_json: bool) -> int:
    """Show service and watcher. 0 when one runs and all is well, 3 when something is to be seen to."""
    from pipeline.watch import install, tale

    data = settings(options.config).data_dir
    service, told = install.state(install.manager(os.environ)), tale.tell(data)
    if as_json:
        output.emit({"service": service, "watcher": told.state, "running": told.running, "summary": told.summary})
    else:
        output.say(f"watcher: {output.plain(told.summary)}")
        where = f"{service['manager']}, {service['path']}"
        how = "running" if service["running"] else "installed, not running" if service["installed"] else "not installed"
        output.say(f"service: {how} ({output.plain(where)})")
        if service["fault"]:
            output.say(f"  {output.plain(service['fault'])}")
        for warning in told.warnings:
            output.warn(warning)
    return int(ExitCode.OK if told.running and not told.warnings else ExitCode.PROBLEMS)
