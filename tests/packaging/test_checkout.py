"""The checkout itself: what Git keeps out of it, and the licence it is under."""

from __future__ import annotations

import tomllib

import pytest

from tests.support import ROOT, lacking, needs, own_files, run

PRIVATE_OR_MADE = (
    ".env",
    "sources.toml",
    "category-overrides.toml",
    "catalog/card.md",
    "projections/hermes/skills/one/SKILL.md",
    ".doit.db",
    ".venv/bin/python",
    "dist/retrieval.whl",
    "pipeline/__pycache__/model.cpython-311.pyc",
    "uv.lock",
)


@pytest.mark.requirement("R130", "R316")
@pytest.mark.parametrize("name", PRIVATE_OR_MADE)
def test_git_ignores_what_is_private_or_made(name: str) -> None:
    asked = run([needs("git"), "check-ignore", "--no-index", "--quiet", name])
    if asked.returncode not in {0, 1}:
        lacking("a Git checkout around these tests", "clone the repository")

    assert asked.returncode == 0


def test_git_keeps_every_file_that_travels() -> None:
    kept = {path.as_posix() for path in own_files()}
    bundled = {path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").rglob("*") if path.is_file()}

    assert bundled | {"dodo.py", "taxonomy.toml", "sources.example.toml"} <= kept


@pytest.mark.requirement("R134")
def test_the_licence_is_the_affero_gpl_in_full() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["license"] == "AGPL-3.0-only"
    assert [line.strip() for line in text.splitlines()[:2]] == [
        "GNU AFFERO GENERAL PUBLIC LICENSE",
        "Version 3, 19 November 2007",
    ]
    assert "13. Remote Network Interaction" in text
    assert "END OF TERMS AND CONDITIONS" in text
