"""`retrieval skills list`, `inspect` and `edit`."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pipeline.cli import output
from pipeline.cli.common import opened
from pipeline.config.keys import HARNESSES, STATES
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.admin.skills import Editable, Edited, Filters, Listed

_NEXT = "run `retrieval build`; a watcher that runs does it by itself"


def list_skills(filters: Filters, config: str, *, as_json: bool) -> int:
    """Print the skills that the filters let through, and how many there are. Returns the exit code."""
    from pipeline.admin import skills

    _refuse("state", filters.state, STATES)
    _refuse("harness", filters.harness, HARNESSES)
    with opened(config) as build:
        rows = skills.listing(build, filters)
    counts = skills.counts(rows)
    if as_json:
        shown = [{**row._asdict(), "categories": list(row.categories)} for row in rows]
        output.emit({"skills": shown, "count": len(rows), "counts": counts})
    else:
        _table(rows, counts)
    return int(ExitCode.OK)


def inspect(skill: str, config: str, *, as_json: bool) -> int:
    """Print all that is known of a skill, its bundled files and its text. Returns 1 when the text cannot be read."""
    from pipeline.admin import inspect
    from serve import bundle, text_file

    with opened(config) as build:
        inspect.find(build, skill)  # sections of references have IDs too, and no package
        shown = inspect.show(build, skill)
    text, notes, code = "", [], ExitCode.OK
    try:
        file = text_file.read_path(shown["path"], skill)
        text, notes = file.text, list(file.notes)
        if shown["digest"] and file.digest[: len(shown["digest"])] != shown["digest"]:
            notes.append("the file was changed after the last build; this is the file as it is now")
    except OperatorError as error:
        notes, code = [f"{error.what}: {error.where}"], ExitCode.FAILED
    found = bundle.bundled(shown["path"]) if code == ExitCode.OK else bundle.Bundle([], more=False)
    shown |= {"bundled": found.files, "more_files": found.more, "notes": notes, "text": text}
    if as_json:
        output.emit(shown)
    else:
        _print(shown)
    return int(code)


def edit(skill: str, config: str, *, as_json: bool) -> int:
    """Open a skill's SKILL.md in the editor and say what became of it.

    Returns 3 when the file now has flaws that it did not have, 1 when the editor failed.
    """
    from pipeline.admin import skills

    with opened(config) as build:
        target = skills.editable(build, skill)
        command = _editor()
        copy = skills.keep(build, target)
    status = _run([*command, str(target.path)], str(copy))
    done = skills.reviewed(target, copy)
    if as_json:
        shown = {**done._asdict(), "diagnostics": list(done.diagnostics), "new": list(done.new)}
        output.emit({"id": target.id, "path": str(target.path), **shown, "editor": status, "next": _NEXT})
    else:
        _print_edit(target, done, status)
    if status:
        return int(ExitCode.FAILED)
    return int(ExitCode.PROBLEMS if done.new else ExitCode.OK)


def _refuse(what: str, values: Sequence[str], known: Sequence[str]) -> None:
    for value in values:
        if value not in known:
            raise OperatorError(
                f"there is no {what} `{value}`", next_step=f"use one of: {', '.join(known)}", code=ExitCode.USAGE
            )


def _table(rows: Sequence[Listed], counts: dict[str, dict[str, int]]) -> None:
    if rows:
        cells = [(row.state, row.status, row.id, ", ".join(row.categories)) for row in rows]
        output.table(cells, ("state", "status", "id", "categories"))
    by = "; ".join(
        ", ".join(f"{number} {name}" for name, number in counts[key].items()) for key in ("status", "state") if rows
    )
    output.say(output.styled(f"{output.count(len(rows), 'skill')}{': ' + by if by else ''}", "dim"))


def _print(shown: dict[str, Any]) -> None:
    lists = {"bundled", "more_files", "notes", "text"}
    width = max(map(len, shown))
    for key, value in shown.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if text and key not in lists:
            output.say(f"{output.styled(key.replace('_', ' ').ljust(width), 'dim')}  {output.plain(text)}")
    for file in shown["bundled"]:
        output.say(f"{output.styled('file'.ljust(width), 'dim')}  {output.plain(file)}")
    if shown["more_files"]:
        output.say(output.styled(f"and more than these {len(shown['bundled'])}", "dim"))
    for note in shown["notes"]:
        output.say(output.styled(output.plain(note), "yellow"))
    if shown["text"]:
        output.say()
        for line in shown["text"].splitlines():
            output.say(output.plain(line.expandtabs(4)))


def _editor() -> list[str]:
    """The words of the command that edits. Raises OperatorError without an editor or a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise OperatorError(
            "there is no terminal to edit on",
            next_step="run it in a terminal, or change the file itself: `retrieval show ID` has its path",
            code=ExitCode.USAGE,
        )
    name = "VISUAL" if os.environ.get("VISUAL", "").strip() else "EDITOR"
    value = os.environ.get(name, "").strip()
    if not value:
        raise OperatorError(
            "no editor is set", next_step="name one in VISUAL or EDITOR, such as `EDITOR=nano`", code=ExitCode.USAGE
        )
    try:
        words = shlex.split(value, posix=os.name == "posix")
    except ValueError as error:
        raise OperatorError(
            f"{name} cannot be understood: {error}", next_step="correct it", code=ExitCode.USAGE
        ) from error
    found = shutil.which(words[0])
    if found is None:
        raise OperatorError(f"{name} names `{words[0]}`, which is no program", next_step="correct it")
    return [found, *words[1:]]


def _run(command: Sequence[str], copy: str) -> int:
    """Run the editor to its end. Returns its exit code."""
    with _deaf():
        try:
            process = subprocess.Popen(command)
        except OSError as error:
            raise OperatorError(
                f"the editor does not start: {error.strerror or error}",
                where=command[0],
                next_step=f"correct VISUAL or EDITOR; a copy of the text is {copy}",
            ) from error
        return process.wait()


@contextmanager
def _deaf() -> Iterator[None]:
    """Ctrl-C is the editor's alone: it reaches both, and an editor that is killed for it loses what was typed.

    A handler that does nothing, since an ignored signal would stay ignored in the editor.
    """
    names = [getattr(signal, name) for name in ("SIGINT", "SIGQUIT") if hasattr(signal, name)]
    before = {name: signal.signal(name, lambda *_caught: None) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _print_edit(target: Editable, done: Edited, status: int) -> None:
    if target.link:
        output.say(output.styled(output.plain(f"{target.link} is a link to {target.path}"), "dim"))
    if status:
        output.say(output.styled(f"the editor ended with code {status}", "yellow"))
    if not done.changed:
        output.say(f"{output.plain(target.id)} is as it was")
        return
    output.say(f"{output.styled(output.plain(done.name), 'bold')}  {output.plain(target.id)}")
    output.say(output.plain(done.description) or output.styled("it has no description", "yellow"))
    for item in done.diagnostics:
        flaw = f"note: {output.plain(item)}"
        output.say(output.styled(flaw, "yellow") if item in done.new else flaw)
    output.say(output.styled(f"the text as it was: {output.plain(done.kept)}", "dim"))
    output.say(f"next: {_NEXT}")
