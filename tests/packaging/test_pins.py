"""The pinned requirements fit what the project declares, and name neither index nor machine."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import ROOT

PINS = ROOT / ".ci/requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DECLARED = {
    "serve": PROJECT["project"]["dependencies"],
    "build": PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["build"],
    "dev": [text for text in PROJECT["dependency-groups"]["dev"] if isinstance(text, str) and "[" not in text]
    + PROJECT["dependency-groups"]["backend"],
}


def entries(name: str) -> list[str]:
    """The entries of a file of pins, each with its hashes on one line."""
    text = (PINS / f"{name}.txt").read_text(encoding="utf-8")
    return text.replace("\\\n", " ").splitlines()


def pins(name: str) -> dict[str, list[Requirement]]:
    """The pins by package; a package may have one for each range of Python versions."""
    found: dict[str, list[Requirement]] = {}
    for entry in entries(name):
        requirement = Requirement(entry.split(" --hash=", 1)[0].strip())
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


@pytest.mark.parametrize("name", ["serve", "build", "dev", "uv"])
def test_every_pin_is_exact_and_has_hashes(name: str) -> None:
    loose = [entry for entry in entries(name) if not re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", entry)]

    assert loose == []


@pytest.mark.parametrize("name", ["serve", "build", "dev"])
def test_everything_declared_is_pinned_within_its_bounds(name: str) -> None:
    pinned = pins(name)
    outside = []
    for text in DECLARED[name]:
        wanted = Requirement(text)
        versions = [next(iter(pin.specifier)).version for pin in pinned.get(canonicalize_name(wanted.name), [])]
        if not versions or not all(wanted.specifier.contains(version) for version in versions):
            outside.append((text, versions))

    assert outside == []


@pytest.mark.parametrize(("smaller", "larger"), [("serve", "build"), ("build", "dev")])
def test_the_larger_set_has_the_versions_of_the_smaller(smaller: str, larger: str) -> None:
    few, many = pins(smaller), pins(larger)

    assert {
        name
        for name, found in few.items()
        if {str(pin.specifier) for pin in many.get(name, [])} != {str(pin.specifier) for pin in found}
    } == set()


def test_answering_needs_nothing_of_the_building_side() -> None:
    heavy = {"chromadb", "doit", "fastembed", "kubernetes", "grpcio", "tomlkit", "typer", "watchfiles"}

    assert heavy & pins("serve").keys() == set()
