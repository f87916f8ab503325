"""Which names a harness has already: where its skills lie, what they are called, and what is remembered of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from serve.projection import foreign_config, own
from serve.projection.own import loose_names, names
from tests.projection.conftest import skill_text

if TYPE_CHECKING:
    from tests.projection.conftest import World

pytestmark = pytest.mark.long


def put(folder: Path, name: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "SKILL.md"
    path.write_text(skill_text(name or folder.name), encoding="utf-8")
    return path


def exact(world: World, harness: str) -> set[str]:
    return names(harness, world.lane(harness)).exact


@pytest.mark.parametrize(
    ("harness", "below"),
    [
        ("omp", ".omp/agent/skills"),
        ("omp", ".omp/profiles/day/agent/skills"),
        ("omp", ".agents/skills"),
        ("claude", ".claude/skills"),
        ("codex", ".codex/skills"),
        ("codex", ".agents/skills"),
        ("opencode", ".config/opencode/skills"),
        ("gemini", ".gemini/skills"),
        ("hermes", ".hermes/skills"),
        ("hermes", ".hermes/profiles/coder/skills"),
        ("hermes", ".hermes/skills/category"),
    ],
)
def test_the_skills_of_a_harness_are_found_by_folder_and_by_head(world: World, harness: str, below: str) -> None:
    put(Path.home() / below / "folder", "in-head")

    assert exact(world, harness) == {"folder", "in-head"}


@pytest.mark.parametrize("harness", ["omp", "claude", "codex", "opencode", "gemini"])
def test_all_but_hermes_look_one_level_deep(world: World, harness: str) -> None:
    put(Path.home() / own.harness_named(harness).own_skills[0].removeprefix("~/") / "category" / "deep")

    assert exact(world, harness) == set()


@pytest.mark.parametrize(
    ("harness", "below"),
    [("omp", ".omp/skills"), ("omp", ".claude/skills"), ("claude", ".claude/skills"), ("codex", ".codex/skills")],
)
def test_the_skills_of_the_project_and_of_folders_above_it_count_too(
    world: World, harness: str, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Path.cwd()
    put(project / below / "projects")
    (project / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(project / "src" / "deep")

    assert exact(world, harness) == {"projects"}


def test_all_profiles_of_hermes_count_wherever_its_home_is(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "elsewhere"
    put(root / "skills" / "of-the-root")
    put(root / "profiles" / "one" / "skills" / "of-one")
    put(root / "profiles" / "two" / "skills" / "a" / "b" / "of-two")
    expected = {"of-the-root", "of-one", "of-two"}

    for home in (root, root / "profiles" / "one", root / "profiles" / "two"):
        monkeypatch.setenv("HERMES_HOME", str(home))
        assert exact(world, "hermes") == expected


@pytest.mark.parametrize(
    ("variable", "below", "harness"),
    [
        ("PI_CODING_AGENT_DIR", "skills", "omp"),
        ("CLAUDE_CONFIG_DIR", "skills", "claude"),
        ("CODEX_HOME", "skills", "codex"),
    ],
)
def test_a_home_named_in_the_environment_counts(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, below: str, harness: str
) -> None:
    put(tmp_path / "home2" / below / "there")
    monkeypatch.setenv(variable, str(tmp_path / "home2"))

    assert exact(world, harness) == {"there"}


def test_what_hermes_leaves_out_takes_no_name(world: World) -> None:
    skills = Path.home() / ".hermes" / "skills"
    put(skills / "shown")
    for folder in (
        ".archive/old",
        ".hub/x",
        ".git/x",
        "venv/x",
        "node_modules/x",
        "shown/references/x",
        "shown/scripts/x",
    ):
        put(skills / folder)
    put(skills / ".hidden" / "found")
    put(skills / "scripts" / "also")

    assert exact(world, "hermes") == {"shown", "found", "also"}


def test_a_linked_folder_is_followed_once_and_a_loop_ends(world: World, tmp_path: Path) -> None:
    skills = Path.home() / ".hermes" / "skills"
    put(skills / "one")
    put(tmp_path / "outside" / "two")
    (skills / "linked").symlink_to(tmp_path / "outside")
    (skills / "again").symlink_to(skills)
    (tmp_path / "outside" / "loop").symlink_to(tmp_path / "outside")
    (skills / "another-name").symlink_to(skills / "one")

    assert exact(world, "hermes") == {"one", "another-name", "two"}


def test_a_link_into_the_lane_is_no_skill_of_the_harness(world: World) -> None:
    done = world.project(world.skill("pdf"), "hermes")
    skills = Path.home() / ".hermes" / "skills"
    skills.mkdir(parents=True)
    (skills / "link").symlink_to(world.lane("hermes"))
    (skills / "direct").symlink_to(done.path)
    shutil.copytree(done.path, skills / "copied-by-hand")

    assert exact(world, "hermes") == {"copied-by-hand", "pdf"}
    shutil.rmtree(skills / "copied-by-hand")
    assert exact(world, "hermes") == set()
    assert world.project(world.skill("pdf"), "hermes").state == "current"


def test_loose_files_take_names_in_hermes_alone(world: World) -> None:
    for home in (".hermes/skills", ".omp/agent/skills"):
        put(Path.home() / home / "pdf")
        (Path.home() / home / "pdf" / "forms.md").write_text("x", encoding="utf-8")
        (Path.home() / home / "pdf" / "references").mkdir()
        (Path.home() / home / "pdf" / "references" / "more.md").write_text("x", encoding="utf-8")

    assert names("hermes", world.lane("hermes")).loose == {"forms"}
    assert names("omp", world.lane("omp")).loose == set()
    assert loose_names(["SKILL.md", "a.md", "docs/b.md", "references/c.md", "d.txt"], "hermes") == {"a", "b"}
    assert loose_names(["a.md"], "omp") == set()


def test_what_changed_since_the_last_look_is_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "RACY_NS", 0)
    skills = Path.home() / ".omp" / "agent" / "skills"
    first = put(skills / "one")
    assert exact(world, "omp") == {"one"}
    put(skills / "two")
    assert exact(world, "omp") == {"one", "two"}
    first.write_text(skill_text("renamed-in-head"), encoding="utf-8")
    assert exact(world, "omp") == {"one", "renamed-in-head", "two"}
    shutil.rmtree(skills / "two")
    assert exact(world, "omp") == {"one", "renamed-in-head"}


def test_a_second_look_lists_and_reads_nothing_that_did_not_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "RACY_NS", 0)
    for number in range(5):
        put(Path.home() / ".hermes" / "skills" / "category" / f"s{number}")
    first = exact(world, "hermes")
    touched: list[object] = []
    real_open, real_scandir = os.open, os.scandir
    monkeypatch.setattr(os, "open", lambda *a, **k: touched.append(a) or real_open(*a, **k))
    monkeypatch.setattr(os, "scandir", lambda *a: touched.append(a) or real_scandir(*a))

    assert exact(world, "hermes") == first
    assert touched == []


@pytest.mark.parametrize(
    "text",
    [
        "skills:\n  external_dirs:\n    - /a/b\n    - ~/c  # mine\n    # - /not\n    - 'quo ted'\nother:\n  - /no\n",
        'skills:\n  external_dirs:\n  - /a/b\n  - ~/c\n  - "quo ted"\n  more: x\n',
        "skills:\r\n  external_dirs: [/a/b, ~/c, 'quo ted']\r\n",
        "skills:\n  external_dirs: [\n    /a/b,\n    ~/c,\n    quo ted,\n  ]\n",
    ],
)
def test_the_folders_in_settings_are_read_in_each_way_they_are_written(text: str) -> None:
    assert foreign_config.paths(text, "external_dirs") == ["/a/b", "~/c", "quo ted"]


@pytest.mark.parametrize(
    ("text", "found"),
    [("external_dirs: /a", ["/a"]), ("external_dirs:\n", []), ("external_dirs: # none\n", []), ("x: 1\n", [])],
)
def test_one_folder_or_none_in_settings(text: str, found: list[str]) -> None:
    assert foreign_config.paths(text, "external_dirs") == found


def test_folders_that_a_person_has_added_to_a_harness_count(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "extra" / "from-hermes")
    put(Path.home() / ".hermes" / "rel" / "relative")
    put(tmp_path / "omps" / "from-omp")
    monkeypatch.setenv("EXTRA", str(tmp_path / "extra"))
    (Path.home() / ".hermes" / "config.yaml").write_text(
        f"skills:\n  external_dirs:\n    - ${{EXTRA}}\n    - rel\n    - {world.lane('hermes')}\n", encoding="utf-8"
    )
    (Path.home() / ".omp" / "agent").mkdir(parents=True)
    (Path.home() / ".omp" / "agent" / "config.yml").write_text(
        f"skills:\n  customDirectories: [{tmp_path / 'omps'}, {world.lane('omp')}]\n", encoding="utf-8"
    )
    world.project(world.skill("pdf"), "hermes")
    world.project(world.skill("pdf"), "omp")

    assert exact(world, "hermes") == {"from-hermes", "relative"}
    assert exact(world, "omp") == {"from-omp"}
