"""A step is run again when its code changes: the modules it is said to use are those that it really imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pipeline.engine.code import SHAPES, source_of
from pipeline.steps import USES
from tests.support import ROOT

ENTRY = {
    "scan": "pipeline.reader",
    "categorize": "pipeline.steps.categorize",
    "select": "pipeline.steps.select",
    "descriptor": "pipeline.steps.descriptor",
    "card": "pipeline.steps.card",
    "hub": "pipeline.steps.hubs",
    "terms": "pipeline.steps.terms",
    "upsert": "pipeline.steps.upsert",
    "document": "serve.decode",
    "section": "pipeline.steps.section",
    "passage": "pipeline.steps.passage",
}
# Decide how things are said or refused, never what a step makes of a text.
NEUTRAL = {
    "pipeline",
    "pipeline.steps",
    "pipeline.errors",
    "serve",
    "serve.errors",
    "serve.lanes",
    "serve.references",
    "pipeline.config",
}


def exists(module: str) -> bool:
    place = ROOT.joinpath(*module.split("."))
    return place.is_dir() or place.with_name(f"{place.name}.py").is_file()


def imported(module: str) -> set[str]:
    """Our own modules that a module imports outside type checking."""
    tree = ast.parse(source_of(module))
    skipped = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in inner if exists(name)} or {node.module}
    return {name for name in found if name.split(".")[0] in {"pipeline", "serve"}}


def closure(module: str) -> set[str]:
    seen: set[str] = set()
    stack = [module]
    while stack:
        name = stack.pop()
        if name in seen or name in NEUTRAL or name.startswith("pipeline.config."):
            continue
        seen.add(name)
        stack.extend(imported(name))
    return seen


@pytest.mark.parametrize("step", sorted(USES))
def test_a_step_names_all_modules_whose_code_decides_its_results(step: str) -> None:
    assert closure(ENTRY[step]) - set(SHAPES) == set(USES[step]) - set(SHAPES)


def test_every_step_is_held_to_it() -> None:
    assert ENTRY.keys() == USES.keys()


def test_every_module_named_exists() -> None:
    for modules in USES.values():
        for module in modules:
            assert isinstance(source_of(module), bytes)
            assert (
                Path(ROOT, *module.split(".")).with_suffix(".py").is_file() or Path(ROOT, *module.split(".")).is_dir()
            )
