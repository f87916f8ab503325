"""Knows where a Hermes home is on each system and which skill folders it and its profiles have.

The system is a parameter, and everything but `skill_folders` only handles texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pipeline.config.files import is_folder, names_in
from pipeline.config.paths import flavour

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Hermes' own rule. A profile's name therefore holds no dot, which keeps `NAME.archive` apart from every `NAME-PROFILE`.
_PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class SkillFolder(NamedTuple):
    """One folder of a Hermes home: `suffix` makes its source's name, `archived` tells the curator's archive."""

    suffix: str
    path: Path
    archived: bool


def default_home(environ: Mapping[str, str], home: str, os_name: str) -> str:
    """Where Hermes lives when HERMES_HOME is not set."""
    rules = flavour(os_name)
    if os_name == "nt":
        local = environ.get("LOCALAPPDATA", "") or rules.join(home, "AppData", "Local")
        return str(rules.normpath(rules.join(local, "hermes")))
    return str(rules.normpath(rules.join(home, ".hermes")))


def root_of(path: str, default: str, os_name: str) -> str:
    """The folder that holds `skills` and `profiles`, for a home, a profile of it, or the `skills` folder of either.

    A path inside the default home belongs to it; one that is `ROOT/profiles/NAME` belongs to ROOT; any other is a root.
    """
    rules = flavour(os_name)
    if rules.basename(path) == "skills":
        path = rules.dirname(path)
    folded, inside = rules.normcase(path), rules.normcase(rules.join(default, ""))
    if rules.join(folded, "").startswith(inside):
        return default
    above = rules.dirname(path)
    return str(rules.dirname(above)) if rules.basename(above) == "profiles" else path


def skill_folders(root: Path) -> tuple[list[SkillFolder], list[Path]]:
    """The skill folders that exist below a root, and profile folders whose name is none that Hermes gives.

    Order is precedence: the base, the profiles by name, then the archives in the same order.
    """
    live = [("", root / "skills")]
    strange: list[Path] = []
    for name in names_in(root / "profiles"):
        folder = root / "profiles" / name
        if _PROFILE.fullmatch(name):
            live.append((f"-{name}", folder / "skills"))
        elif is_folder(folder / "skills"):
            strange.append(folder)
    found = [SkillFolder(suffix, path, archived=False) for suffix, path in live if is_folder(path)]
    archives = [SkillFolder(f"{suffix}.archive", path / ".archive", archived=True) for suffix, path in live]
    return found + [archive for archive in archives if is_folder(archive.path)], strange
