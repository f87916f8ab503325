"""What a command does not import: start-up time is a promise, and it is kept by leaving things alone."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support import ROOT, run
from tests.world import World

SCRIPT = """
import json, sys
from pipeline.cli import run
code = run(sys.argv[1:])
print("\\n" + json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""
# As on a machine whose files were changed long before: what is younger than two seconds is read again by any build.
SETTLED = """
from pipeline.sources import listing
from pipeline.tasks import scan
listing.RACY_NS = scan.RACY_NS = 0
"""
ENGINES = {"chromadb", "fastembed", "numpy", "onnxruntime", "tokenizers"}


def imported(world: World, *arguments: str) -> set[str]:
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(world.root), **world.environment()}
    script = SETTLED + SCRIPT if arguments[0] == "build" else SCRIPT
    ended = run([sys.executable, "-c", script, *arguments], cwd=world.root, environment=environment)
    code, names = json.loads(ended.stdout.splitlines()[-1])
    assert code in {0, 3}, ended.stdout + ended.stderr
    return set(names)


NOT_FOR_HELP = ENGINES | {"doit", "yaml", "rich", "tomlkit", "watchfiles", "msgspec", "sqlite3", "tomllib", "dotenv"}
FORBIDDEN = {
    ("--help",): NOT_FOR_HELP,
    ("show", "--help"): NOT_FOR_HELP,
    ("search", "--help"): NOT_FOR_HELP,
    ("build",): ENGINES | {"yaml", "rich", "tomlkit", "watchfiles", "httpx", "asyncio"},
    ("build", "--json"): ENGINES | {"yaml", "rich"},
    ("search", "slow sql query"): {
        "chromadb", "fastembed", "doit", "yaml", "rich", "tomlkit", "watchfiles", "httpx", "asyncio", "tomllib", "dotenv",
    },
    ("show", "main:sql-tuning"): ENGINES | {"doit", "yaml", "rich"},
    ("why", "main:sql-tuning"): ENGINES | {"doit", "yaml", "rich"},
    ("status",): ENGINES | {"doit", "yaml", "rich"},
}  # fmt: skip


@pytest.mark.parametrize("arguments", FORBIDDEN, ids=" ".join)
def test_a_command_leaves_alone_what_it_does_not_need(arguments: tuple[str, ...], library: World) -> None:
    if arguments[0] == "build":
        imported(library, "build")  # has read what was too young for the build before it
    assert imported(library, *arguments) & FORBIDDEN[arguments] == set()


def test_a_search_does_load_its_model_and_a_build_its_driver(library: World) -> None:
    assert {"numpy", "onnxruntime", "tokenizers"} <= imported(library, "search", "slow sql query")
    assert {"doit", "typer"} <= imported(library, "build")
