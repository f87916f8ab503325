"""Which selector the settings mean, and why it is not the one that somebody may expect."""

from __future__ import annotations

from serve.errors import ExitCode, OperatorError
from serve.selection import Selector
from serve.selection.limits import ChoiceError
from serve.settings import ScoutSettings

NAMES = ("auto", "omp", "endpoint", "rank")


def open_selector(settings: ScoutSettings, harness: str = "") -> tuple[Selector, tuple[str, ...]]:
    """The selector for a process that answers one harness, and notes for its answers: why another one was not taken.

    The caller closes it. A scout that is to stand by is started in the background at once. Raises OperatorError for a name
    that no selector has; anything else that is wrong becomes the reason of a failed choice, so that a process starts and
    can say it.
    """
    del harness  # each call opens a selector of its own: no process of one harness ever answers another
    name, notes = resolve(settings)
    if name == "omp":
        from serve.selection.omp import OmpSelector

        scout = OmpSelector(settings)
        scout.warm()
        return scout, notes
    if name == "endpoint":
        from serve.selection.endpoint import EndpointSelector

        return EndpointSelector(settings), notes
    from serve.selection.rank import RankSelector

    return RankSelector(), notes


def resolve(settings: ScoutSettings) -> tuple[str, tuple[str, ...]]:
    """The name of the selector that is used, and notes. "auto" is omp where program and model are there, else rank."""
    if settings.selector not in NAMES:
        raise OperatorError(
            f"there is no selector `{settings.selector}`",
            next_step=f"use one of: {', '.join(NAMES)}",
            code=ExitCode.USAGE,
        )
    if settings.selector != "auto":
        return settings.selector, ()
    missing = _missing(settings)
    return ("rank", (f"no model chooses, the ranking does: {missing}",)) if missing else ("omp", ())


def _missing(settings: ScoutSettings) -> str:
    """What keeps omp from being used, "" when nothing does."""
    from serve.selection import omp_setup

    if omp_setup.find_program(settings) is None:
        return f"there is no program `{settings.omp_command or 'omp'}`"
    try:
        omp_setup.access(settings)
    except ChoiceError as error:
        return str(error)
    return ""
