"""What a source's path says about it when its block does not: whose tree it is, and whether that harness shows it."""

from __future__ import annotations

from pipeline.config.paths import flavour

# Each harness's own folder of user skills below the home folder. A project's folder of the same name is no such thing:
# only whoever works in that project sees its skills.
_BELOW_HOME = (
    ("claude", (".claude", "skills")),
    ("codex", (".codex", "skills")),
    ("gemini", (".gemini", "skills")),
    ("opencode", (".config", "opencode", "skills")),
    ("opencode", (".config", "opencode", "skill")),
)

ARCHIVE = ".archive"


def harness_of(path: str, *, home: str, hermes_home: str, os_name: str) -> str:
    """The harness whose tree a normalised absolute path is in, or ""."""
    parts = _parts(path, os_name)
    if ".hermes" in parts and "skills" in parts[parts.index(".hermes") :]:
        return "hermes"
    if _below(parts, (*_parts(hermes_home, os_name), "skills")):
        return "hermes"
    if ".omp" in parts:
        return "omp"
    top = _parts(home, os_name)
    for harness, below in _BELOW_HOME:
        if _below(parts, (*top, *below)):
            return harness
    return ""


def state_of(path: str, harness: str, os_name: str) -> str:
    """The state of a source that names none: a harness's own tree is native, its archive archived, all else cold."""
    if not harness:
        return "cold"
    return "archived" if ARCHIVE in _parts(path, os_name) else "native"


def _parts(path: str, os_name: str) -> tuple[str, ...]:
    rules = flavour(os_name)
    return tuple(part for part in str(rules.normcase(path)).split(rules.sep) if part)


def _below(parts: tuple[str, ...], top: tuple[str, ...]) -> bool:
    return parts[: len(top)] == top
