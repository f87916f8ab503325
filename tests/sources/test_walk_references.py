"""The walk of a source of references: which files are documents, and what becomes a problem."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from pipeline.sources import listing
from pipeline.sources.listing import WalkCache
from pipeline.sources.references import Walk, walk
from tests.support import run

if TYPE_CHECKING:
    from tests.sources.conftest import Library


def paths(found: Walk) -> list[str]:
    return [item.path for item in found.files]


def problems(found: Walk, root: Path) -> list[tuple[str, str]]:
    return [(problem.kind, os.path.relpath(problem.where, root)) for problem in found.problems]


def test_markdown_files_are_documents_at_any_depth_and_in_any_case(library: Library) -> None:
    library.write("a.md", "deep/er/b.MARKDOWN", "c.Md", "SKILL.md", "d.mdx", "e.txt", "md", ".md.swp")

    found = walk(library.root)

    assert paths(found) == ["SKILL.md", "a.md", "c.Md", "deep/er/b.MARKDOWN"]
    assert [item.file for item in found.files] == [str(library.root / path) for path in paths(found)]
    assert found.problems == []


def test_folders_of_tools_are_never_entered(library: Library) -> None:
    library.write("node_modules/x/README.md", ".git/x.md", ".venv/y.md", "docs/__pycache__/z.md", ".github/a.md")

    assert paths(walk(library.root)) == [".github/a.md"]


def test_only_the_path_below_the_source_counts(tmp_path: Path) -> None:
    root = tmp_path / "node_modules" / "drafts" / "docs"
    root.mkdir(parents=True)
    (root / "a.md").write_text("# a\n", encoding="utf-8")

    assert paths(walk(root, exclude=["drafts", "**/drafts", "node_modules"])) == ["a.md"]


@pytest.mark.parametrize(
    ("include", "exclude", "left"),
    [
        ([], [], ["a.md", "guides/b.md", "guides/old/c.md", "notes.markdown"]),
        (["guides"], [], ["guides/b.md", "guides/old/c.md"]),
        (["guides/*.md"], [], ["guides/b.md"]),
        (["*.md"], [], ["a.md"]),
        (["**/*.markdown"], [], ["notes.markdown"]),
        ([], ["**/old"], ["a.md", "guides/b.md", "notes.markdown"]),
        ([], ["guides/b.md"], ["a.md", "guides/old/c.md", "notes.markdown"]),
        (["guides"], ["**/c.md"], ["guides/b.md"]),
        (["nothing"], [], []),
    ],
)
def test_globs_choose_files_by_their_path(
    library: Library, include: list[str], exclude: list[str], left: list[str]
) -> None:
    library.write("a.md", "guides/b.md", "guides/old/c.md", "notes.markdown")

    assert paths(walk(library.root, include=include, exclude=exclude)) == left


def test_links_are_not_followed_and_those_that_hide_something_are_problems(library: Library, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("# secret\n", encoding="utf-8")
    library.write("docs/a.md", "docs/plain.txt")
    library.link("alias.md", "docs/a.md")
    library.link("docs-again", "docs")
    library.link("up", ".")
    library.link("plain.md", "docs/plain.txt")
    library.link("out.md", outside / "secret.md")
    library.link("out", outside)
    library.link("gone.md", "nowhere.md")
    library.link("gone.txt", "nowhere.txt")

    found = walk(library.root)

    assert paths(found) == ["docs/a.md"]
    assert problems(found, library.root) == [
        ("dangling_link", "gone.md"),
        ("outside_link", "out"),
        ("outside_link", "out.md"),
        ("linked_document", "plain.md"),
    ]


def test_an_excluded_link_is_no_problem(library: Library) -> None:
    library.write("a.md")
    library.link("old/gone.md", "nowhere.md")

    assert walk(library.root, exclude=["old"]).problems == []


def test_what_is_named_like_a_document_and_is_none_is_a_problem(library: Library) -> None:
    library.write("folder.md/inside.md")
    os.mkfifo(library.root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(library.root / "s.md"))
        found = walk(library.root)

    assert paths(found) == ["folder.md/inside.md"]
    assert problems(found, library.root) == [("not_a_document", "pipe.md"), ("not_a_document", "s.md")]


def test_a_name_that_is_no_text_is_a_problem(library: Library) -> None:
    library.write("a.md")
    try:
        Path(os.fsdecode(os.fsencode(library.root) + b"/b\xff.md")).write_bytes(b"# b\n")
    except OSError:
        pytest.skip("this file system has no such names")

    found = walk(library.root)

    assert paths(found) == ["a.md"]
    assert [(problem.kind, problem.where.endswith("b\\xff.md")) for problem in found.problems] == [("bad_name", True)]


def test_a_file_over_the_limit_is_a_problem(library: Library) -> None:
    library.write("a.md", text="x" * 100).write("b.md", text="x" * 101)

    found = walk(library.root, max_bytes=100)

    assert paths(found) == ["a.md"]
    assert problems(found, library.root) == [("document_too_large", "b.md")]


def test_a_source_that_is_not_there_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")

    assert [problem.kind for problem in walk(tmp_path / "gone").problems] == ["source_missing"]
    assert [problem.kind for problem in walk(tmp_path / "file").problems] == ["not_a_folder"]


UNREADABLE = """
import json, os, sys
from pathlib import Path
from pipeline.sources.references import walk
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
found = walk(Path(sys.argv[1]))
print(json.dumps([[f.path for f in found.files], [[p.kind, p.where] for p in found.problems]]))
"""


def test_a_folder_that_cannot_be_listed_is_a_problem_and_the_rest_is_found() -> None:
    # Not below tmp_path: the walking process gives up its rights and could not get there.
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "docs"
        for name in ("a", "locked", "z"):
            (root / name).mkdir(parents=True)
            (root / name / "x.md").write_text("# x\n", encoding="utf-8")
        os.chmod(place, 0o755)
        (root / "locked").chmod(0)
        try:
            done = run([sys.executable, "-c", UNREADABLE, str(root)])
        finally:
            (root / "locked").chmod(0o755)

        assert json.loads(done.stdout) == [["a/x.md", "z/x.md"], [["unreadable", str(root / "locked")]]], done.stderr


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes folders for settled at once, so that no test has to wait until they are."""
    monkeypatch.setattr(listing, "RACY_NS", -60_000_000_000)


@pytest.mark.usefixtures("patient")
def test_folders_are_listed_again_only_when_they_changed(library: Library) -> None:
    library.write("a.md", "docs/b.md")
    first = walk(library.root)
    library.write("docs/c.md", "new/d.md")

    cached = WalkCache.load(first.cache.dump())
    second = walk(library.root, cache=cached)
    third = walk(library.root, cache=second.cache)

    assert (first.listed, second.listed, third.listed) == (2, 3, 0)
    assert paths(second) == paths(third) == ["a.md", "docs/b.md", "docs/c.md", "new/d.md"]
    assert third.cache is second.cache


def test_a_folder_that_changed_just_now_is_listed_again(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# a\n", encoding="utf-8")

    assert walk(tmp_path).cache.listings == {}


@pytest.mark.usefixtures("patient")
def test_a_file_that_went_since_its_folder_was_listed_is_simply_not_there(library: Library) -> None:
    library.write("a.md", "b.md")
    first = walk(library.root)
    (library.root / "b.md").unlink()
    stat = library.root.stat()
    times = {"mtime_ns": stat.st_mtime_ns, "ctime_ns": stat.st_ctime_ns}
    as_listed = {"": msgspec.structs.replace(first.cache.listings[""], **times)}

    found = walk(library.root, cache=WalkCache(first.cache.root, as_listed))

    assert paths(found) == ["a.md"]
    assert found.problems == []


def test_a_deleted_folder_leaves(library: Library) -> None:
    library.write("a.md", "docs/b.md")
    first = walk(library.root)
    shutil.rmtree(library.root / "docs")

    assert paths(walk(library.root, cache=first.cache)) == ["a.md"]
