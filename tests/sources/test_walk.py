"""The walk: which folders are skills, what belongs to each, and what becomes a problem."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.sources.skills import MAX_SKILL_BYTES, SkillFolder, Walk, walk
from tests.support import ROOT

if TYPE_CHECKING:
    from tests.sources.conftest import Library


def folders(found: Walk) -> list[str]:
    return [skill.folder for skill in found.skills]


def skill(found: Walk, folder: str) -> SkillFolder:
    return next(skill for skill in found.skills if skill.folder == folder)


def files(found: Walk, folder: str) -> list[str]:
    return [name for name, _, _ in skill(found, folder).files]


def problems(found: Walk, root: Path) -> list[tuple[str, str]]:
    return [(problem.kind, os.path.relpath(problem.where, root)) for problem in found.problems]


@pytest.fixture
def tree(shared: Path, tmp_path: Path) -> Path:
    """The shared example tree with the links that a checkout cannot hold."""
    root = tmp_path / "tree"
    shutil.copytree(shared / "parser-cases/tree", root)
    for folder, _, _ in os.walk(root):
        os.chmod(folder, 0o755)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/SKILL.md").write_text("---\nname: secret\n---\n", encoding="utf-8")
    (root / "linked").mkdir()
    (root / "linked/SKILL.md").symlink_to("../outer/SKILL.md")
    (root / "linked-dir").symlink_to("outer")
    (root / "dangling").symlink_to("missing-target")
    (root / "outside").symlink_to(tmp_path / "elsewhere")
    (root / "loop/back").symlink_to("..")
    return root


def test_the_shared_tree_is_found_as_it_is_described(tree: Path) -> None:
    found = walk(tree, source="tree")
    deep = "deep/" + "/".join(f"level{level:02}" for level in range(1, 13))

    assert folders(found) == sorted(
        [
            ".",
            "lower-case",
            "upper-ext",
            "title-case",
            "both-cases",
            "outer",
            "outer/inner",
            "outer/assets/sample",
            "loop",
            deep,
            "(group)/with space",
            "折纸",
        ]
    )
    assert files(found, ".") == []
    assert files(found, "outer") == ["scripts/run.sh"]
    assert files(found, "outer/inner") == ["ref.md"]
    assert files(found, "both-cases") == []
    assert {skill.folder: skill.diagnostics for skill in found.skills if skill.diagnostics} == {
        "lower-case": ("file_case",),
        "upper-ext": ("file_case",),
        "title-case": ("file_case",),
        "both-cases": ("two_skill_files",),
    }
    assert {skill.folder: skill.aliases for skill in found.skills if skill.aliases} == {
        "outer": (str(tree / "linked-dir/SKILL.md"), str(tree / "linked/SKILL.md")),
        "outer/inner": (str(tree / "linked-dir/inner/SKILL.md"),),
        "outer/assets/sample": (str(tree / "linked-dir/assets/sample/SKILL.md"),),
    }
    assert problems(found, tree) == [
        ("dangling_link", "dangling"),
        ("link_loop", "loop/back"),
        ("outside_link", "outside"),
    ]
    assert all(problem.source == "tree" and problem.what and problem.next for problem in found.problems)


def test_a_path_is_absolute_and_a_stat_tells_size_times_and_inode(library: Library) -> None:
    library.write("a/SKILL.md", text="12345").write("a/run.sh", "a/data.txt")
    (library.root / "a/run.sh").chmod(0o755)
    found = skill(walk(library.root), "a")
    about = (library.root / "a/SKILL.md").stat()

    assert found.path == str(library.root / "a/SKILL.md")
    assert found.stat == (5, about.st_mtime_ns, about.st_ctime_ns, about.st_ino)
    assert [(name, executable) for name, _, executable in found.files] == [("data.txt", False), ("run.sh", True)]
    assert found.files[0][1][0] == (library.root / "a/data.txt").stat().st_size


def test_a_relative_root_gives_absolute_paths(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.write("a/SKILL.md")
    monkeypatch.chdir(library.root.parent)

    assert walk(Path("library")).skills[0].path == str(library.root / "a/SKILL.md")


def test_a_package_holds_everything_below_but_nested_skills(library: Library) -> None:
    library.write(
        "a/SKILL.md", "a/x/one.md", "a/x/b/SKILL.md", "a/x/b/two.md", "a/x/b/y/three.md", "a/z/four.md", "five.md"
    )
    found = walk(library.root)

    assert files(found, "a") == ["x/one.md", "z/four.md"]
    assert files(found, "a/x/b") == ["two.md", "y/three.md"]


@pytest.mark.parametrize(
    "name",
    [
        ".git",
        ".hg",
        ".svn",
        ".hub",
        ".archive",
        ".retrieval-archive",
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
    ],
)
@pytest.mark.requirement("R313")
def test_an_ignored_folder_is_not_descended_into_but_can_be_a_source(library: Library, name: str) -> None:
    library.write("a/SKILL.md", f"a/{name}/x.txt", f"{name}/b/SKILL.md")
    found = walk(library.root)

    assert folders(found) == ["a"]
    assert files(found, "a") == []
    assert found.listed == 2
    assert folders(walk(library.root / name)) == ["b"]


def test_other_hidden_folders_are_searched(library: Library) -> None:
    assert folders(walk(library.write(".claude/skills/a/SKILL.md").root)) == [".claude/skills/a"]


@pytest.mark.parametrize(
    ("names", "chosen", "diagnostics"),
    [
        (["skill.md"], "skill.md", ("file_case",)),
        (["Skill.MD"], "Skill.MD", ("file_case",)),
        (["SKILL.md", "skill.md", "Skill.md"], "SKILL.md", ("two_skill_files",)),
        (["skill.md", "Skill.md"], "Skill.md", ("file_case", "two_skill_files")),
    ],
)
def test_skill_md_counts_in_any_case(
    library: Library, names: list[str], chosen: str, diagnostics: tuple[str, ...]
) -> None:
    library.write(*(f"a/{name}" for name in names))
    if len(list((library.root / "a").iterdir())) < len(names):
        pytest.skip("this file system does not tell upper from lower case")
    found = skill(walk(library.root), "a")

    assert found.path == str(library.root / "a" / chosen)
    assert found.diagnostics == diagnostics
    assert found.files == ()


def test_names_that_merely_resemble_skill_md_make_no_skill(library: Library) -> None:
    assert walk(library.write("a/SKILL.mdx", "b/MY-SKILL.md", "c/SKILL", "d/SKİLL.md").root).skills == []


def test_odd_names_and_depths_are_found_in_sorted_order(library: Library) -> None:
    names = [
        "a b",
        "a'b\"c",
        "a-b",
        "a/b",
        "ä",
        "e\u0301",
        "折纸/🎉",
        "x" * 255,
        "/".join(["d"] * 60),
        "#?*[x]",
        "line\nbreak",
    ]
    library.write(*(f"{name}/SKILL.md" for name in names))

    assert folders(walk(library.root)) == sorted(names)


def test_a_path_longer_than_the_system_allows_is_a_problem(library: Library) -> None:
    library.write("a/SKILL.md")
    here = os.getcwd()
    os.chdir(library.root)
    try:
        for _ in range(18):  # beyond what one path can say, though each step is possible
            os.mkdir("n" * 250)
            os.chdir("n" * 250)
        Path("SKILL.md").write_text("x", encoding="utf-8")
    finally:
        os.chdir(here)
    found = walk(library.root)

    assert folders(found) == ["a"]
    assert [problem.kind for problem in found.problems] == ["path_too_long"]


def test_a_name_that_is_no_text_is_a_problem(library: Library) -> None:
    library.write("a/SKILL.md")
    try:
        os.mkdir(os.fsencode(library.root) + b"/caf\xe9")
    except OSError:
        pytest.skip("this file system takes only names that are text")
    (Path(os.fsdecode(os.fsencode(library.root) + b"/a/caf\xe9.txt"))).write_bytes(b"")
    found = walk(library.root)

    assert problems(found, library.root) == [("bad_name", "caf\\xe9")]
    assert skill(found, "a").diagnostics == ("bundled_bad_name",)
    json.dumps([problem.where for problem in found.problems]).encode("utf-8")


def test_a_skill_file_over_the_limit_is_a_problem_and_keeps_its_files_to_itself(library: Library) -> None:
    library.write("SKILL.md", "a/x.txt", "a/b/SKILL.md", "c/SKILL.md")
    with (library.root / "a/SKILL.md").open("wb") as file:
        file.truncate(MAX_SKILL_BYTES + 1)
    found = walk(library.root)

    assert folders(found) == [".", "a/b", "c"]
    assert files(found, ".") == []
    assert problems(found, library.root) == [("too_large", "a/SKILL.md")]
    assert folders(walk(library.root, max_bytes=MAX_SKILL_BYTES + 1)) == [".", "a", "a/b", "c"]


def test_what_is_called_skill_md_and_is_no_file_is_a_problem(library: Library) -> None:
    library.write("a/SKILL.md/inner/SKILL.md", "z/SKILL.md")
    (library.root / "b").mkdir()
    os.mkfifo(library.root / "b/SKILL.md")
    (library.root / "c").mkdir()
    (library.root / "c/SKILL.md").symlink_to("../z")
    found = walk(library.root)

    assert folders(found) == ["a/SKILL.md/inner", "z"]
    assert problems(found, library.root) == [
        ("not_a_file", "a/SKILL.md"),
        ("not_a_file", "b/SKILL.md"),
        ("not_a_file", "c/SKILL.md"),
    ]


def test_pipes_and_sockets_belong_to_no_package(library: Library) -> None:
    library.write("a/SKILL.md")
    os.mkfifo(library.root / "a/pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(library.root / "a")  # a socket's path has to be short
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        assert stat.S_ISSOCK((library.root / "a/socket").lstat().st_mode)
        assert files(walk(library.root), "a") == []


@pytest.mark.requirement("R222")
def test_a_source_that_is_not_there_is_a_problem_and_no_empty_source(library: Library) -> None:
    found = walk(library.root / "nowhere", source="mine")

    assert [(problem.kind, problem.source) for problem in found.problems] == [("source_missing", "mine")]
    library.write("file")
    assert [problem.kind for problem in walk(library.root / "file").problems] == ["not_a_folder"]


UNREADABLE = """
import json, os, sys
from pathlib import Path
from pipeline.sources.skills import walk
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
found = walk(Path(sys.argv[1]))
print(json.dumps([[[s.folder, s.diagnostics] for s in found.skills], [[p.kind, p.where] for p in found.problems]]))
"""


def test_a_folder_that_cannot_be_listed_is_a_problem_and_the_rest_is_found() -> None:
    # Not below tmp_path: the walking process gives up its rights and could not get there.
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "library"
        for name in ("a", "closed", "sealed", "z"):
            (root / name).mkdir(parents=True)
            (root / name / "SKILL.md").write_text("x", encoding="utf-8")
        (root / "z/locked").mkdir()
        (root / "z/locked/x.txt").write_text("x", encoding="utf-8")
        os.chmod(place, 0o755)
        (root / "z/locked").chmod(0o444)
        (root / "closed").chmod(0o000)
        (root / "sealed").chmod(0o444)  # can be listed, but nothing in it can be looked at
        try:
            done = subprocess.run(
                [sys.executable, "-c", UNREADABLE, str(root)],
                cwd=ROOT,
                capture_output=True,
                check=True,
                encoding="utf-8",
            )
        finally:
            for name in ("closed", "sealed", "z/locked"):
                (root / name).chmod(0o755)

    assert json.loads(done.stdout) == [
        [["a", []], ["z", ["bundled_unreadable"]]],
        [["unreadable", str(root / "closed")], ["unreadable", str(root / "sealed/SKILL.md")]],
    ]
