"""The list of promises and the tests that prove them say the same."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

STATES = ("open", "done")
IDENTIFIER = re.compile(r"R\d{3}")


def promises_of(manifest: Mapping[str, Any]) -> list[dict[str, str]]:
    return [promise for area in manifest["area"] for promise in area["promises"]]


def named_in(source: str) -> Iterator[tuple[str, int]]:
    """Each id that a `requirement` marker names, with its line; anything but a plain text counts as ""."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="requirement", value=ast.Attribute(attr="mark")), args=arguments):
                for argument in arguments:
                    text = argument.value if isinstance(argument, ast.Constant) else None
                    yield (text if isinstance(text, str) else ""), node.lineno
            case _:
                pass


def complaints(promises: Iterable[Mapping[str, str]], sources: Mapping[str, str]) -> list[str]:
    """Everything in which promises and tests disagree. `sources` maps a test file's name to its text."""
    promises = list(promises)
    found = [
        f"{identifier} is defined {times} times"
        for identifier, times in Counter(promise["id"] for promise in promises).items()
        if times > 1
    ]
    for promise in promises:
        if not IDENTIFIER.fullmatch(promise["id"]):
            found.append(f"{promise['id']} is not of the form R012")
        if promise["state"] not in STATES:
            found.append(f"{promise['id']} has the unknown state {promise['state']}")
        if not promise["text"].endswith(".") or not promise["text"][:1].isalnum():
            found.append(f"{promise['id']} is not a sentence")
    known = {promise["id"] for promise in promises}
    proven = set()
    for name, source in sources.items():
        for identifier, line in named_in(source):
            proven.add(identifier)
            if identifier not in known:
                found.append(f"{name}:{line} names {identifier or 'something that is no text'}, which is no promise")
    found.extend(
        f"{promise['id']} is done, and no test names it"
        for promise in promises
        if promise["state"] == "done" and promise["id"] not in proven
    )
    return found


def test_promises_and_tests_agree() -> None:
    manifest = tomllib.loads((ROOT / "tests/requirements.toml").read_text(encoding="utf-8"))
    files = sorted((ROOT / "tests").rglob("*.py"))
    sources = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}

    assert complaints(promises_of(manifest), sources) == []


DONE = {"id": "R001", "state": "done", "text": "It holds."}
OPEN = {"id": "R002", "state": "open", "text": "It will hold."}
PROOF = '@pytest.mark.requirement("R001")\ndef test_it() -> None: ...\n'


@pytest.mark.parametrize(
    ("promises", "source", "expected"),
    [
        pytest.param([DONE, OPEN], PROOF, [], id="agreement"),
        pytest.param([DONE], "", ["R001 is done, and no test names it"], id="done without a test"),
        pytest.param([DONE], "# R001\n'R001'\n", ["R001 is done, and no test names it"], id="a mention is no proof"),
        pytest.param(
            [OPEN], PROOF, ["test_x.py:1 names R001, which is no promise"], id="a test that names an unknown promise"
        ),
        pytest.param(
            [DONE],
            PROOF + "pytestmark = [pytest.mark.requirement(NAME)]\n",
            ["test_x.py:3 names something that is no text, which is no promise"],
            id="a name that cannot be read without running",
        ),
        pytest.param([DONE, DONE], PROOF, ["R001 is defined 2 times"], id="two promises of one id"),
        pytest.param(
            [DONE | {"state": "maybe"}], PROOF, ["R001 has the unknown state maybe"], id="a state that is neither"
        ),
        pytest.param([DONE | {"text": "it holds"}], PROOF, ["R001 is not a sentence"], id="no sentence"),
        pytest.param(
            [DONE | {"id": "R1"}],
            PROOF.replace("R001", "R1"),
            ["R1 is not of the form R012"],
            id="an id of another form",
        ),
        pytest.param(
            [DONE, OPEN | {"state": "done"}],
            'pytest.param(1, marks=pytest.mark.requirement("R001", "R002"))\n',
            [],
            id="one marker on a parameter for two promises",
        ),
    ],
)
def test_each_disagreement_is_told(promises: list[dict[str, str]], source: str, expected: list[str]) -> None:
    assert complaints(promises, {"test_x.py": source}) == expected
