"""The walk with a cache: the same result as without, and only changed folders are listed."""

from __future__ import annotations

import os
import random
import shutil
import threading
from typing import TYPE_CHECKING

import msgspec
import pytest

from pipeline.sources import listing
from pipeline.sources.skills import Walk, WalkCache, walk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sources.conftest import Library


def result(found: Walk) -> tuple[object, ...]:
    return (found.skills, found.problems, found.excluded)


def later(cache: WalkCache) -> WalkCache:
    """The cache after a trip through its bytes, as a later process has it."""
    loaded = WalkCache.load(cache.dump())
    assert loaded is not None
    return loaded


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes folders for settled at once, so that no test has to wait until they are."""
    monkeypatch.setattr(listing, "RACY_NS", -60_000_000_000)


@pytest.mark.usefixtures("patient")
def test_an_unchanged_source_is_not_listed_again_and_needs_no_new_cache(library: Library) -> None:
    library.write("SKILL.md", "a/SKILL.md", "a/b/x.txt", "c/d/skill.md").link("l", "a")
    first = walk(library.root)
    cache = later(first.cache)
    second = walk(library.root, cache=cache)

    assert (first.listed, second.listed) == (5, 0)
    assert second.cache is cache
    assert result(second) == result(first)


@pytest.mark.usefixtures("patient")
def test_an_edit_in_place_shows_without_listing(library: Library) -> None:
    library.write("a/SKILL.md", "a/x.txt")
    cache = walk(library.root).cache
    (library.root / "a/SKILL.md").write_text("longer than it was", encoding="utf-8")
    (library.root / "a/x.txt").chmod(0o755)
    found = walk(library.root, cache=cache)

    assert found.listed == 0
    assert found.skills[0].stat[0] == len("longer than it was")
    assert found.skills[0].files[0][2]


@pytest.mark.usefixtures("patient")
def test_only_folders_whose_entries_changed_are_listed(library: Library) -> None:
    library.write("a/SKILL.md", "b/SKILL.md", "c/SKILL.md")
    cache = walk(library.root).cache
    (library.root / "b/new.txt").write_text("new", encoding="utf-8")
    os.utime(library.root / "b", ns=(99, 99))
    found = walk(library.root, cache=later(cache))

    assert found.listed == 1
    assert found.cache is not cache
    assert [len(skill.files) for skill in found.skills] == [0, 1, 0]


def test_a_folder_that_changed_just_before_it_was_listed_is_listed_again(library: Library) -> None:
    library.write("a/SKILL.md")
    first = walk(library.root)

    assert walk(library.root, cache=later(first.cache)).listed == 2


def test_a_change_that_leaves_the_folders_times_as_they_were_is_seen(library: Library) -> None:
    """A file system's clock ticks slowly: a file can come after the listing and before the next tick."""
    library.write("a/SKILL.md")
    folder = library.root / "a"
    first = walk(library.root)
    library.write("a/late.txt")
    about = folder.stat()
    forged = {
        name: msgspec.structs.replace(known, mtime_ns=about.st_mtime_ns, ctime_ns=about.st_ctime_ns, inode=about.st_ino)
        if name == "a"
        else known
        for name, known in listing_of(library.root).items()
    }
    forged["a"] = msgspec.structs.replace(forged["a"], files=())
    remembered = WalkCache.of(str(library.root), first.started_ns, forged)
    found = walk(library.root, cache=remembered)

    assert [name for name, _, _ in found.skills[0].files] == ["late.txt"]


def listing_of(root: Path) -> dict[str, listing.Listing]:
    return {
        os.path.relpath(folder, root) if folder != str(root) else "": listing.list_folder(folder, os.lstat(folder))
        for folder, _, _ in os.walk(root)
    }


@pytest.mark.usefixtures("patient")
def test_files_that_vanish_after_their_folder_was_listed_do_no_harm(library: Library) -> None:
    library.write("a/SKILL.md", "b/SKILL.md", "b/x.txt")
    found = walk(library.root)
    seen = dict(found.cache.listings)
    seen["a"] = msgspec.structs.replace(seen["a"], files=("ghost.txt",), folders=("SKILL.md", "ghost"))
    seen["b"] = msgspec.structs.replace(seen["b"], skill="skill.md")
    again = walk(library.root, cache=WalkCache(found.cache.root, seen))

    assert [(skill.folder, skill.files) for skill in again.skills] == [("a", ())]
    assert [(problem.kind, os.path.relpath(problem.where, library.root)) for problem in again.problems] == [
        ("vanished", "b/skill.md")
    ]


def test_a_source_that_changes_all_the_time_is_walked_without_an_error(library: Library) -> None:
    library.write(*(f"keep/{number}/SKILL.md" for number in range(20)))
    stop = threading.Event()

    def disturb() -> None:
        number = 0
        while not stop.is_set():
            number = (number + 1) % 8
            library.write(f"come/{number}/SKILL.md", f"come/{number}/x/y.txt")
            shutil.rmtree(library.root / f"come/{(number + 4) % 8}", ignore_errors=True)

    disturber = threading.Thread(target=disturb)
    disturber.start()
    try:
        cache = None
        for _ in range(60):
            found = walk(library.root, cache=cache)
            cache = found.cache
            assert {f"keep/{number}" for number in range(20)} <= {skill.folder for skill in found.skills}
            assert {problem.kind for problem in found.problems} <= {"vanished"}
    finally:
        stop.set()
        disturber.join()
    assert result(walk(library.root, cache=cache)) == result(walk(library.root))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: b"garbage",
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data + b"x",
        lambda data: b"\x91" * 10_000 + data,
        lambda data: msgspec.msgpack.encode([99, *msgspec.msgpack.decode(data)[1:]]),
        lambda data: msgspec.msgpack.encode({"version": 1}),
        lambda data: data.replace(b"SKILL.md", b"SKILL\xff\xff\xff"),
    ],
)
def test_a_spoiled_cache_is_refused(library: Library, spoil: object) -> None:
    library.write("a/SKILL.md", "a/b/x.txt")
    data = WalkCache(str(library.root), listing_of(library.root)).dump()

    assert callable(spoil)
    assert WalkCache.load(data) is not None
    assert WalkCache.load(spoil(data)) is None


@pytest.mark.usefixtures("patient")
def test_the_cache_of_another_folder_is_not_used(library: Library, tmp_path: Path) -> None:
    library.write("a/SKILL.md")
    (tmp_path / "other").symlink_to(library.root)

    assert walk(tmp_path / "other", cache=walk(library.root).cache).listed == 2


@pytest.mark.usefixtures("patient")
def test_other_patterns_with_the_same_cache_give_what_they_give_without(library: Library) -> None:
    library.write("a/SKILL.md", "b/SKILL.md", "b/c/SKILL.md")
    cache = walk(library.root, exclude=["b"]).cache

    assert result(walk(library.root, cache=cache)) == result(walk(library.root))
    assert result(walk(library.root, include=["b/c"], cache=cache)) == result(walk(library.root, include=["b/c"]))


class Editor:
    """Makes random changes to a library, each of a kind that people and programs make."""

    NAMES = ("SKILL.md", "skill.md", "x.txt", "run.sh", "notes")
    FOLDERS = ("a", "b", "c", "assets", "node_modules", ".git", ".hidden")

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        self.ticks = 0

    def folder(self) -> Path:
        return self.root.joinpath(*(self.random.choice(self.FOLDERS) for _ in range(self.random.randrange(4))))

    def anything(self) -> Path:
        found = sorted(self.root.rglob("*"))
        return self.random.choice(found) if found else self.root

    def edit(self) -> None:
        """One change, after which each folder that holds something else than before has a time of its own."""
        before = self.entries()
        self.change()
        for folder, held in self.entries().items():
            if before.get(folder) != held:
                self.ticks += 1
                os.utime(folder, ns=(self.ticks, self.ticks))

    def entries(self) -> dict[str, list[tuple[str, int]]]:
        return {
            folder: sorted((entry.name, entry.inode()) for entry in os.scandir(folder))
            for folder, _, _ in os.walk(self.root)
        }

    def change(self) -> None:
        try:
            self.random.choice(
                (self.write, self.write, self.write, self.remove, self.move, self.link, self.touch, self.mode)
            )()
        except (FileExistsError, NotADirectoryError, FileNotFoundError, IsADirectoryError, OSError):
            return  # a change that is not possible here is no change

    def write(self) -> None:
        folder = self.folder()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.random.choice(self.NAMES)).write_text("x" * self.random.randrange(50), encoding="utf-8")

    def remove(self) -> None:
        path = self.anything()
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path != self.root:
            shutil.rmtree(path)

    def move(self) -> None:
        target = self.folder()
        target.parent.mkdir(parents=True, exist_ok=True)
        self.anything().rename(target)

    def link(self) -> None:
        folder = self.folder()
        folder.mkdir(parents=True, exist_ok=True)
        name = self.random.choice((*self.NAMES, *self.FOLDERS, "link"))
        (folder / name).symlink_to(os.path.relpath(self.anything(), folder))

    def touch(self) -> None:
        os.utime(self.anything(), ns=(0, self.random.randrange(2**60)))

    def mode(self) -> None:
        path = self.anything()
        path.chmod(0o755 if path.is_dir() else self.random.choice((0o644, 0o755)))


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("seed", range(12))
def test_after_any_edits_a_walk_with_the_cache_equals_one_without(library: Library, seed: int) -> None:
    editor = Editor(library.root, seed)
    cache: WalkCache | None = None
    reused = 0
    for _ in range(40):
        for _ in range(editor.random.randrange(4)):
            editor.edit()
        found = walk(library.root, cache=cache)
        fresh = walk(library.root)
        assert result(found) == result(fresh)
        reused += fresh.listed - found.listed
        cache = later(found.cache)
    assert reused > 40
