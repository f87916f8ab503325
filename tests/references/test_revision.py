"""The Git revision of a file's repository, read without Git: held against what Git itself says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from serve.references.revision import Revisions
from tests.references.support import DocsWorld
from tests.support import needs, run


class Repository:
    """A repository with one commit, worked on with the real Git."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("docs/a.md", "# A\n\nFirst.\n")

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        home = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        named = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = run([needs("git"), *arguments], cwd=cwd or self.root, environment=home | named)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, path: str, text: str) -> str:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        self.git("add", "--", path)
        self.git("commit", "--quiet", "--message", "x")
        return self.head()

    def head(self, cwd: Path | None = None) -> str:
        return self.git("rev-parse", "HEAD", cwd=cwd)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def revision(folder: Path, name: str = "docs/a.md") -> str:
    return Revisions().of(str(folder / name))


def test_a_branch_is_followed_to_its_commit(repository: Repository) -> None:
    assert revision(repository.root) == repository.head()


def test_a_packed_reference_is_found(repository: Repository) -> None:
    repository.git("branch", "other/main")
    repository.git("tag", "--annotate", "--message", "x", "v1")
    repository.git("pack-refs", "--all", "--prune")
    assert not (repository.root / ".git/refs/heads/main").exists()

    assert revision(repository.root) == repository.head()


def test_a_loose_reference_is_newer_than_a_packed_one(repository: Repository) -> None:
    repository.git("pack-refs", "--all", "--prune")
    newer = repository.commit("docs/b.md", "# B\n")

    assert revision(repository.root) == newer


def test_a_detached_head_is_read_as_it_stands(repository: Repository) -> None:
    first = repository.head()
    repository.commit("docs/b.md", "# B\n")
    repository.git("checkout", "--quiet", "--detach", first)

    assert revision(repository.root) == first


def test_a_working_tree_has_a_head_of_its_own(repository: Repository, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    repository.git("worktree", "add", "--quiet", "-b", "side", str(tree))
    repository.commit("docs/b.md", "# B\n")
    own = repository.head(tree)
    assert own != repository.head()

    assert revision(tree) == own
    repository.git("pack-refs", "--all", "--prune")
    assert revision(tree) == own


def test_a_submodule_is_a_repository_of_its_own(repository: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.commit("docs/a.md", "# A\n\nOther.\n")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.root), "sub")
    repository.git("commit", "--quiet", "--message", "sub")

    assert revision(repository.root / "sub") == other.head() != repository.head()


def test_a_branch_name_with_slashes_is_a_path(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "feature/deep/name")

    newer = repository.commit("docs/b.md", "# B\n")

    assert revision(repository.root) == newer


def test_a_repository_without_a_commit_has_no_revision(tmp_path: Path) -> None:
    run([needs("git"), "init", "--quiet", str(tmp_path / "fresh")])

    assert revision(tmp_path / "fresh", "a.md") == ""


def test_no_repository_no_revision(tmp_path: Path) -> None:
    assert revision(tmp_path, "a.md") == ""


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"ref: refs/heads/../../../secret",
        b"ref: /etc/passwd",
        b"ref: refs/heads/gone",
        b"not a revision",
        b"ref: refs/heads/loop",
        b"\xff\xfe\x00",
        b"g" * 40,
        b"ref: " + b"x" * 10_000,
    ],
)
def test_a_head_that_says_nothing_usable_gives_no_revision(tmp_path: Path, head: bytes) -> None:
    git = tmp_path / ".git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_bytes(head)
    (git / "refs/heads/loop").write_text("ref: refs/heads/loop\n", encoding="utf-8")

    assert revision(tmp_path, "a.md") == ""


@pytest.mark.parametrize("pointer", ["", "gitdir: nowhere", "something else", "gitdir: ."])
def test_a_git_file_that_leads_nowhere_gives_no_revision(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(pointer, encoding="utf-8")

    assert revision(tmp_path, "a.md") == ""


def test_a_new_commit_is_noticed_and_an_unchanged_repository_is_read_once(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    from serve.references import revision as module

    revisions = Revisions()
    read: list[Path] = []
    original = module._line
    monkeypatch.setattr(module, "_line", lambda path: (read.append(path), original(path))[1])
    file = str(repository.root / "docs/a.md")
    first = revisions.of(file)
    count = len([path for path in read if path.name == "HEAD"])

    assert revisions.of(file) == first
    assert len([path for path in read if path.name == "HEAD"]) == count == 1

    newer = repository.commit("docs/b.md", "# B\n")
    assert revisions.of(file) == newer != first
    repository.git("pack-refs", "--all", "--prune")
    assert revisions.of(file) == newer
    repository.git("checkout", "--quiet", "--detach", first)
    assert revisions.of(file) == first


def test_a_hit_names_the_commit_and_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    world = DocsWorld(tmp_path)
    world.books()
    repository = Repository(world.folder())
    world.build()
    references = world.references()
    head = repository.head()
    references.answer("tide")

    def refuse(*_arguments: object, **_more: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse)
    monkeypatch.setattr(os, "fork", refuse)
    (hit,) = references.answer("why is the tide late", limit=1)["results"]

    assert hit["citation"]["version"] == f"git:{head}"
    assert hit["citation"]["authority"] == "high"
    assert any("the commit that is checked out" in said for said in hit["assumptions"])
