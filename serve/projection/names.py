"""Under which name and in which folder a copy lies, so that no harness confuses it with another skill.

A copy keeps the skill's own name wherever that is free. Else the source's name is added, and where that is taken too, a few
digits made from its ID.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from blake3 import blake3

from serve.projection.errors import ProjectionError

# Folders that a harness does not look into, and names that Windows keeps for devices.
_NEVER = frozenset(
    {
        "venv",
        "node_modules",
        "site-packages",
        "references",
        "templates",
        "assets",
        "scripts",
        "skill-md",
        "con",
        "prn",
        "aux",
    }
    | {"nul", "conin", "conout", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
)
_FOLDER = 64
_TRIES = 50


class Place(NamedTuple):
    """name: under which the harness lists the copy. folder: of the lane, made of letters, digits, ".", "_" and "-"."""

    name: str
    folder: str


@lru_cache(4_096)
def key(name: str) -> str:
    """What makes two names too much alike: harnesses make commands of names, and some file systems ignore case."""
    return re.sub(r"[\W_]+", "-", name.casefold()).strip("-") or name


def usable(name: str, limit: int) -> bool:
    """Whether a harness can list a skill under this name and find it by it."""
    return (
        0 < len(name) <= limit
        and name.isprintable()
        and name == name.strip()
        and not name.startswith(".")
        and not set(name) & set("/\\:*?\"'<>|[]{}")
        and any(char.isalnum() for char in name)
    )


def folder_of(name: str, skill_id: str) -> str:
    """The folder for a name: the name itself where that is a plain one."""
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")
    stem = text.split(".")[0].casefold()
    if not text or len(text) * 2 < len(name):
        return f"skill-{_digits(skill_id)}"
    if stem in _NEVER or text.casefold() in _NEVER:
        text = f"skill-{text}"
    return text[:_FOLDER].rstrip("-.")


def choose(name: str, skill_id: str, limit: int, free: Callable[[Place], bool], held: Place | None) -> Place:
    """The first free place for a skill. held: where its copy lies now, which it keeps while that is free but for itself.

    Raises ProjectionError when none of many is free.
    """
    for place in chain([] if held is None else [held], _candidates(name, skill_id, limit)):
        if free(place):
            return place
    raise ProjectionError(
        f"no name is left for the copy of {skill_id}",
        next_step="remove copies with `retrieval projected clear`, or rename the skills that have its name",
    )


def _candidates(name: str, skill_id: str, limit: int) -> Iterator[Place]:
    """The name itself, and from the second on plain ones: small letters, digits and "-"."""
    if usable(name, limit):
        yield Place(name, folder_of(name, skill_id))
    source = skill_id.partition(":")[0]
    base = _plain(name) or f"skill-{_digits(skill_id)}"
    if base in _NEVER:
        base = f"skill-{base}"
    endings = ["", f"-{_plain(source)}" if _plain(source) else "", f"-{_digits(skill_id)}"]
    for ending in endings:
        yield _same(_cut(base, ending, limit))
    for number in range(2, _TRIES):
        yield _same(_cut(base, f"-{_digits(skill_id)}-{number}", limit))


def _cut(base: str, ending: str, limit: int) -> str:
    ending = ending[: limit // 2]
    return (base[: limit - len(ending)].rstrip("-") + ending).strip("-")


def _same(name: str) -> Place:
    return Place(name, name)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _digits(skill_id: str) -> str:
    return blake3(skill_id.encode("utf-8", "surrogatepass")).hexdigest(length=4)
