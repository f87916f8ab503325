"""What answering needs to know of each harness. A harness is a file here; `NAMES` lists them in their documented order."""

from __future__ import annotations

import importlib

import msgspec

from serve.errors import ExitCode, OperatorError


class Harness(msgspec.Struct, frozen=True, kw_only=True):
    """A coding agent that calls Retrieval.

    name: the word in settings. title: as its makers write it. reload: what makes it list a projected skill, as a person
    types it in a running session; "" when only a new session does, or nothing. lane_setting: its setting for further folders
    of skills, where the lane belongs; "" when it has none, so that a copy is only files that lie ready. own_skills: folders,
    below the home folder, of the skills it lists itself; `~` stands for the home. name_limit: the longest skill name it takes.
    """

    name: str
    title: str
    reload: str
    lane_setting: str
    own_skills: tuple[str, ...]
    name_limit: int = 64


NAMES = ("hermes", "omp", "claude", "codex", "opencode", "gemini")


def harness(name: str) -> Harness:
    """The harness called so. Raises OperatorError for a name that no file here describes."""
    if name not in NAMES:
        raise OperatorError(
            f"there is no harness `{name}`", next_step=f"use one of: {', '.join(NAMES)}", code=ExitCode.USAGE
        )
    found: Harness = importlib.import_module(f"serve.harnesses.{name}").HARNESS
    return found
