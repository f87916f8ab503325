"""What doctor says of answering: the IWE lane's program, who chooses, the lanes of projections, and the usage record."""

from __future__ import annotations

import os
import tempfile
import time
from typing import TYPE_CHECKING

from pipeline.admin.doctor import Check, guarded, program
from serve.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from serve.settings import ServeSettings


def examine(config: str = "") -> list[Check]:
    """The checks of the answering side, each on its own."""
    from pipeline.settings import locate
    from serve.settings import from_lookup

    try:
        lookup, _found = locate(config or None)
        settings = from_lookup(lookup)
    except OperatorError as error:
        return [Check("answering", "fail", error.what, error.next_step, error.where, error.code)]
    return [
        *guarded("iwec", lambda: [_iwec(settings)]),
        *guarded("selector", lambda: _selector(settings)),
        *guarded("projections", lambda: _projections(settings.data_dir)),
        *guarded("usage record", lambda: [_usage(settings)]),
    ]


def _iwec(settings: ServeSettings) -> Check:
    without = "answers are ranked without the IWE lane"
    if settings.iwec_command == "off":
        return Check("iwec", "info", f"switched off; {without}")
    return program("iwec", settings.iwec_command or "iwec", without, "RETRIEVAL_IWEC_COMMAND")


def _selector(settings: ServeSettings) -> Iterator[Check]:
    from serve.selection.checks import explain

    for found in explain(settings.scout):
        name = found.what if found.what == "selector" else f"selector: {found.what}"
        remedy = "" if found.ok else found.next_step or "see `retrieval serve --help`"
        yield Check(name, "ok" if found.ok else "warn", found.detail, remedy)


def _projections(data_dir: Path) -> Iterator[Check]:
    from serve.projection.layout import Layout

    layout = Layout(data_dir)
    names = layout.harnesses()
    if not names:
        yield Check("projections", "info", "no skill was copied into a harness's lane yet")
    for name in names:
        yield _lane(f"projections of {name}", layout.lane(name))


def _lane(name: str, lane: Path) -> Check:
    try:
        with tempfile.TemporaryFile(dir=lane):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return Check(name, "fail", f"{lane} cannot be written to: {reason}", "give this user the right to write it")
    with os.scandir(lane) as entries:
        copies = sum(entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".") for entry in entries)
    return Check(name, "ok", f"{copies} {'copy' if copies == 1 else 'copies'}, {lane}")


def _usage(settings: ServeSettings) -> Check:
    from serve.usage import UsageLog

    try:
        state = UsageLog(settings.data_dir, settings.usage, settings.bounds.usage_rows).state()
    except OperatorError as error:
        return Check("usage record", "warn", error.what, error.next_step, error.where)
    held = f"{state['rows']} queries, {state['bytes'] // 1024} KiB, {state['path']}"
    if state["oldest"] is not None:
        held = f"since {time.strftime('%Y-%m-%d', time.localtime(state['oldest']))}: {held}"
    if not state["enabled"]:
        return Check("usage record", "info", f"switched off{'; kept from before: ' + held if state['rows'] else ''}")
    return (
        Check("usage record", "ok", held) if state["bytes"] else Check("usage record", "info", "nothing recorded yet")
    )
