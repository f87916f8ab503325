"""The shape of the project: small rooms, one direction of imports, nothing of the machine it was made on."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from typing import TYPE_CHECKING

import pytest

from tests.support import ROOT, own_files, run

if TYPE_CHECKING:
    from collections.abc import Callable

LINES_OF_A_FILE = 300
LINES_OF_A_FUNCTION = 40
PACKAGES = ("pipeline", "serve")
BUILD_SIDE = ("pipeline", "chromadb", "doit", "tomlkit", "typer", "watchfiles")

# Put together from pieces, so that this file does not contain what it looks for.
MACHINE_PATHS = re.compile("/(?:" + "tmp|work|farm|root" + ")/[A-Za-z0-9_]")
REGISTRY_HOSTS = re.compile(
    "|".join(
        (
            r"pypi\.o" + "rg",
            r"pythonhosted\.o" + "rg",
            r"registry\.npm" + "js",
            r"crates\.i" + "o",
            r"deb\.debian\.o" + "rg",
        )
    )
)
LEFT_OVERS = re.compile("|".join((r"\bTO" + "DO", r"\bFIX" + "ME", r"\bXX" + r"X\b")))

MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

IMPORT_ALL_OF_SERVE = """
import importlib, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"{name} is refused here", name=name)
        return None

REFUSED = set(sys.argv[1].split(","))
sys.meta_path.insert(0, Refuse())
for module in sys.argv[2:]:
    importlib.import_module(module)
print("imported", len(sys.argv) - 2)
"""


def functions_of(source: str) -> list[tuple[str, int, int]]:
    """Name, first line and length of each function, its docstring not counted."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if ast.get_docstring(node, clean=False) is not None:
                length -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            found.append((node.name, node.lineno, length))
    return found


def module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def left_overs(source: str) -> list[int]:
    """Lines with a comment that puts work off, or with an error that stands for a missing piece."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [
        token.start[0]
        for token in tokens
        if (token.type == tokenize.COMMENT and LEFT_OVERS.search(token.string))
        or (token.type == tokenize.NAME and token.string == "NotImplemented" + "Error")
    ]


def swallowed(source: str) -> list[int]:
    """Lines of handlers that catch everything and say nothing."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
        and all(isinstance(statement, ast.Pass | ast.Continue) for statement in node.body)
    ]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    found: list[str] = []
    for path in own_files():
        content = (ROOT / path).read_bytes()
        if b"\0" in content[:8000]:
            continue
        text = content.decode("utf-8", errors="replace")
        found.extend(f"{path}:{text.count(chr(10), 0, match.start()) + 1}" for match in pattern.finditer(text))
    return found


def test_a_docstring_does_not_count_as_length() -> None:
    source = 'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n'

    assert functions_of(source) == [("f", 1, 2)]


def test_no_file_is_longer_than_one_room() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}

    assert {name: length for name, length in lengths.items() if length > LINES_OF_A_FILE} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    too_long = [
        f"{path.relative_to(ROOT)}:{line} {name} has {length} lines"
        for path in MODULES
        for name, line, length in functions_of(path.read_text(encoding="utf-8"))
        if length > LINES_OF_A_FUNCTION
    ]

    assert too_long == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in MODULES
        if ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None
    ]

    assert silent == []


def test_the_import_contracts_hold() -> None:
    script = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    result = run([sys.executable, "-c", script])

    assert result.returncode == 0, result.stdout + result.stderr


def test_serve_imports_where_the_building_side_cannot_be() -> None:
    modules = [
        module_name(path.relative_to(ROOT).as_posix())
        for path in MODULES
        if path.is_relative_to(ROOT / "serve") and path.name != "__main__.py"
    ]
    result = run([sys.executable, "-c", IMPORT_ALL_OF_SERVE, ",".join(BUILD_SIDE), *modules])

    assert (result.stdout, result.returncode) == (f"imported {len(modules)}\n", 0), result.stderr


def test_the_refusal_of_imports_works() -> None:
    result = run([sys.executable, "-c", IMPORT_ALL_OF_SERVE, ",".join(BUILD_SIDE), "pipeline.model"])

    assert result.returncode == 1
    assert "pipeline is refused here" in result.stderr


@pytest.mark.parametrize(
    ("pattern", "example"),
    [
        pytest.param(MACHINE_PATHS, "see /" + "tmp/x", id="paths of a machine"),
        pytest.param(REGISTRY_HOSTS, "https://py" + "pi.org/simple", id="registry hosts"),
    ],
)
def test_no_file_names(pattern: re.Pattern[str], example: str) -> None:
    assert pattern.search(example)
    assert lines_with(pattern) == []


@pytest.mark.parametrize(
    ("look", "example"),
    [
        pytest.param(left_overs, "x = 1  # TO" + "DO later\n", id="left-overs"),
        pytest.param(left_overs, "raise NotImplemented" + "Error\n", id="missing pieces"),
        pytest.param(swallowed, "try:\n    f()\nexcept Exception:\n    pass\n", id="exceptions that vanish"),
    ],
)
def test_no_module_has(look: Callable[[str], list[int]], example: str) -> None:
    assert look(example)
    assert [
        f"{path.relative_to(ROOT)}:{line}"
        for path in [*MODULES, ROOT / "dodo.py"]
        for line in look(path.read_text(encoding="utf-8"))
    ] == []
