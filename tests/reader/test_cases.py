"""The reader on the shared collection of malformed skills: name, description, tags, diagnostics and start of the body."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.reader import read_skill

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def expected(shared: Path) -> dict[str, dict[str, Any]]:
    loaded: dict[str, Any] = json.loads((shared / "parser-cases/expected.json").read_text(encoding="utf-8"))
    return loaded["cases"]


def differences(case: dict[str, Any], folder: Path) -> dict[str, tuple[object, object]]:
    """What the reader says otherwise than `case` does, as (read, expected)."""
    reading = read_skill((folder / case["file"]).read_bytes(), case["dir"])
    diagnostics = set(reading.diagnostics)
    wanted = set(case["diagnostics"])
    if "yaml_error_or_not_string" in wanted:  # the collection leaves open which of two faults a reader sees
        wanted.discard("yaml_error_or_not_string")
        diagnostics.discard("yaml_error")
    pairs = {
        "name": (reading.name, case["name"]),
        "description": (reading.description, case["description"]),
        "tags": (list(reading.tags), case["tags"]),
        "diagnostics": (diagnostics, wanted),
        "hidden": (reading.hidden, case.get("flags", {}).get("hide", False)),
        "body": (reading.head.partition("\n")[0], case["body_first_line"]),
    }
    return {
        what: pair for what, pair in pairs.items() if pair[0] != pair[1] and not (what == "body" and pair[1] is None)
    }


def test_every_case_of_the_collection_is_read_as_it_says(expected: dict[str, Any], shared: Path) -> None:
    folder = shared / "parser-cases"

    found = {key: differences(case, folder) for key, case in expected.items()}

    assert {key: value for key, value in found.items() if value} == {}


def test_the_collection_has_every_file_it_describes_and_no_other(expected: dict[str, Any], shared: Path) -> None:
    files = {path.name for path in (shared / "parser-cases").glob("*.md")}

    assert files == {case["file"] for case in expected.values()}
    assert len(files) >= 90
