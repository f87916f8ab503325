"""Up to the list of tools nothing is loaded that a client would have to wait for, and nothing of the building side ever."""

from __future__ import annotations

import sys

import pytest

from serve import tools
from tests.server.client import RawClient, text_of

pytestmark = pytest.mark.long

BUILD_SIDE = ("pipeline", "doit", "watchfiles", "tomlkit", "typer", "chromadb")
HEAVY = ("numpy", "onnxruntime", "tokenizers", "dotenv", "serve.search", "serve.retrieve", "serve.references.answer")

# The server, with imports of some modules refused and, when it ends, all that were imported told on standard error.
WATCHED = """
import os, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED or name in REFUSED:
            raise ModuleNotFoundError(f"{name} is refused here", name=name)
        return None

REFUSED = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Refuse())
from serve import __main__ as program, server
server._QUIET = server._LATEST = 3600
code = program.main(sys.argv[1:])
os._exit(code)
"""


def watched(refused: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-c", WATCHED, ",".join(refused)]


def test_the_tools_are_listed_without_anything_heavy() -> None:
    with RawClient(watched((*BUILD_SIDE, *HEAVY))) as raw:
        raw.initialize()
        listed = raw.ask("tools/list")["tools"]
        assert [tool["name"] for tool in listed] == [tools.SKILL, tools.REFERENCE]

        refused = text_of(raw.call(query="something"))
        assert "is refused here" in refused  # so the refusal works, and a call needs what the list does not
        assert raw.end() == 0


def test_a_call_needs_nothing_of_the_building_side() -> None:
    with RawClient(watched(BUILD_SIDE)) as raw:
        raw.initialize()
        assert text_of(raw.call(query="something")).startswith("error: there is no index yet\n")
        assert raw.end() == 0
