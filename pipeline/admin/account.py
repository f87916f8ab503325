"""The account of a build as people and scripts read it: sums, warnings, and what the last run left behind."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.config.suggest import shown
from pipeline.config.values import ConfigWarning
from pipeline.errors import LockedError

if TYPE_CHECKING:
    from pipeline.engine.build import Build

_MOST = 20  # overrides named one by one


class _OnlyId(msgspec.Struct):
    id: str


def configured(build: Build) -> list[dict[str, str]]:
    """The configuration's warnings and those about overrides, as `--json` prints them (warning, where, next)."""
    return [warning.as_dict() for warning in (*build.settings.warnings, *unmatched_overrides(build))]


def unmatched_overrides(build: Build) -> list[ConfigWarning]:
    """One warning for each category override whose skill no source has; those of disabled sources wait for them.

    Looks at what the last scan found. Raises ConfigError for an overrides file that cannot be read.
    """
    path = build.settings.overrides_path
    if not path.is_file():
        return []
    found = set[str]()
    for source in build.sources:
        found |= _ids(build, source.name)
    asleep = {source.name for source in build.settings.sources if not source.enabled}
    lost = [item for item in build.overrides.unmatched(found) if item.partition(":")[0] not in asleep]
    warnings = [
        ConfigWarning(
            f"the override for {shown(item)} has no effect: no source has that skill",
            str(path),
            "correct the ID (`retrieval search` shows IDs), or remove the line",
        )
        for item in lost[:_MOST]
    ]
    if len(lost) > _MOST:
        warnings.append(
            ConfigWarning(f"{len(lost) - _MOST} more overrides have no effect", str(path), warnings[0].next_step)
        )
    return warnings


def _ids(build: Build, source: str) -> set[str]:
    from pipeline.engine import manifest

    return {row.id for row in manifest.previous(build.paths.manifest("scan", source), _OnlyId)}


def counted(counts: dict[str, dict[str, int]]) -> dict[str, int]:
    """The sums over all sources."""
    keys = ("found", "indexed", "duplicate", "suppressed", "review", "problem")
    return {key: sum(row[key] for row in counts.values()) for key in keys}


def holder(build: Build) -> dict[str, object]:
    """Who writes to the data directory right now (pid, command, since); {} when nobody does. Takes no lock and leaves no trace."""
    found = build.lock.holder()
    pid = found.get("pid")
    return found if isinstance(pid, int) and _alive(pid) else {}


def _alive(pid: int) -> bool:
    """Whether a process runs. A killed build leaves its name behind; Windows cannot be asked without harm, so it is believed."""
    if os.name == "nt":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    return True


def wait_for_quiet(build: Build) -> None:
    """Wait, at most as long as for the lock, until nobody writes. Raises LockedError naming who still does."""
    timeout = build.settings.lock_timeout
    deadline = time.monotonic() + timeout
    while found := holder(build):
        if time.monotonic() >= deadline:
            raise LockedError(build.paths.lock, found, timeout)
        time.sleep(0.05)


def last_run(build: Build) -> dict[str, Any]:
    """What the last build left as its account; {} when there is none that can be read."""
    try:
        held = msgspec.json.decode(build.paths.last_run.read_bytes())
    except (OSError, msgspec.MsgspecError):
        return {}
    return held if isinstance(held, dict) else {}
