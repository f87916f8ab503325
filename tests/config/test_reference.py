"""What is written for people says what the program does."""

from __future__ import annotations

import re
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from pipeline.config.keys import POLICY, SOURCE
from pipeline.config.reference import page
from pipeline.config.variables import BY_NAME
from pipeline.settings import load_settings
from tests.support import run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.config.conftest import World


def example(root: Path) -> str:
    return (root / "sources.example.toml").read_text(encoding="utf-8")


def test_the_reference_page_is_current(root: Path) -> None:
    assert (root / "docs/configuration.md").read_text(encoding="utf-8") == page()


def test_the_command_on_the_page_prints_the_page(root: Path) -> None:
    command = re.search(r"`python (-m \S+) > docs/configuration.md`", page())
    assert command is not None

    assert run([sys.executable, *command[1].split()]).stdout == page()


def test_every_key_and_every_variable_stands_on_the_page() -> None:
    text = page()
    names = (
        [key.name for key in (*SOURCE, *POLICY)]
        + list(BY_NAME)
        + [name for row in BY_NAME.values() for name in row.aliases]
    )

    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_table_row_on_the_page_has_the_columns_of_its_head() -> None:
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in page().splitlines() if line.startswith("|")]

    assert set(widths) == {3, 4, 5}


def test_the_hermes_names_on_the_page_are_those_that_a_home_gets(world: World) -> None:
    block = re.search(r"```toml\n(.*?)```", page(), re.DOTALL)
    assert block is not None
    for folder in ("skills/.archive", "profiles/coder/skills/.archive"):
        world.skills(f"home/.hermes/{folder}")
    world.config(block[1])
    names = [source.name.replace("coder", "PROFILE") for source in world.load().sources]

    assert names == ["hermes", "hermes-PROFILE", "hermes.archive", "hermes-PROFILE.archive"]
    assert [name for name in names if f"`{name}`" not in page()] == []


def test_the_example_works_as_it_is_shipped(root: Path, tmp_path: Path) -> None:
    settings = load_settings(root / "sources.example.toml", environ={}, cwd=tmp_path, home=tmp_path)

    assert [(source.name, source.path) for source in settings.sources] == [("examples", root / "examples/library")]
    assert settings.sources[0].available
    assert settings.warnings == ()


def uncommented(text: str) -> str:
    """The example with everything switched on; `# ---` and the head are prose."""
    body = text[text.index("\n[[sources]]") :]
    lines = (line for line in body.splitlines() if not line.startswith("# ---"))
    return "\n".join(re.sub(r"^# ?", "", line) for line in lines)


def test_what_the_example_has_commented_out_works_once_it_is_switched_on(root: Path, world: World) -> None:
    for folder in (
        "here/examples/library",
        "home/skill-library",
        "home/.hermes/skills",
        "home/.omp/agent/skills",
        "home/.claude/skills",
        "home/team/skills",
        "home/skills",
        "home/handbook",
    ):
        world.skills(folder)
    world.config(uncommented(example(root)))
    settings = world.load()

    assert [(source.name, source.state, source.enabled) for source in settings.sources] == [
        ("examples", "cold", True),
        ("library", "cold", True),
        ("hermes", "native", True),
        ("omp", "native", True),
        ("claude", "native", True),
        ("handbook", "cold", True),
        ("old-library", "archived", False),
        ("team", "cold", True),
        ("personal", "cold", True),
    ]
    assert settings.warnings == ()


def test_the_example_shows_every_key(root: Path) -> None:
    parsed = tomllib.loads(uncommented(example(root)))
    shown = {key for block in parsed["sources"] for key in block}

    assert shown == {key.name for key in SOURCE}


@pytest.mark.parametrize("name", ["README.md", "sources.example.toml"])
def test_variables_named_elsewhere_are_known(root: Path, name: str) -> None:
    text = (root / name).read_text(encoding="utf-8")

    assert set(re.findall(r"\bRETRIEVAL_[A-Z_]+", text)) <= set(BY_NAME)
