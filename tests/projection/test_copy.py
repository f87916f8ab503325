"""What of a package is copied, what is left out and named, and when nothing is copied at all."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from serve.projection import copying
from serve.projection.errors import ProjectionError
from serve.projection.layout import MARKER, read_marker
from tests.projection.conftest import skill_text, tree
from tests.support import ROOT, run

if TYPE_CHECKING:
    from tests.projection.conftest import World


@pytest.mark.requirement("R006", "R034")
def test_the_whole_package_is_copied_byte_for_byte(world: World) -> None:
    record = world.skill("pdf", skill_text("pdf", body="# Größe\r\n\r\nno end of line"))
    world.add(record, "scripts/deep/run.sh", "#!/bin/sh\n", 0o755)
    world.add(record, "assets/picture.bin", bytes(range(256)) * 5000)
    world.add(record, ".hidden/x", "")
    original = tree(Path(record.path).parent)

    done = world.project(record)

    copy = tree(done.path)
    marker = copy.pop(MARKER)
    assert copy == original
    assert (done.state, done.name, done.files, done.skipped) == ("copied", "pdf", 4, ())
    assert done.bytes == sum(map(len, original.values()))
    assert done.path == world.lane() / "pdf"
    assert b'"id": "lib:pdf"' in marker


@pytest.mark.requirement("R006")
@pytest.mark.parametrize("harness", ["hermes", "omp", "claude", "codex", "opencode", "gemini"])
def test_a_copy_lies_in_the_lane_of_the_harness_that_asked_and_in_no_other(world: World, harness: str) -> None:
    world.project(world.skill("pdf"), harness)

    assert [path.relative_to(world.data).parts[1:-1] for path in world.data.rglob("SKILL.md")] == [
        (harness, "skills", "pdf")
    ]


@pytest.mark.requirement("R122")
def test_projecting_changes_nothing_in_the_library(world: World) -> None:
    record = world.skill("pdf", "no head at all\n")
    world.add(record, "scripts/run.sh", "#!/bin/sh\n", 0o4755)
    library = Path(record.path).parent
    before = {path: (path.lstat(), path.is_file() and path.read_bytes()) for path in sorted(library.rglob("*"))}

    world.project(record, "omp")
    world.project(record, "hermes")

    after = {path: (path.lstat(), path.is_file() and path.read_bytes()) for path in sorted(library.rglob("*"))}
    same = ("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_nlink")
    assert before.keys() == after.keys()
    for path, (stat_before, bytes_before) in before.items():
        stat_after, bytes_after = after[path]
        assert bytes_before == bytes_after
        assert [getattr(stat_before, key) for key in same] == [getattr(stat_after, key) for key in same]


@pytest.mark.requirement("R035")
def test_links_are_left_out_and_named_wherever_they_lead(world: World, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("private", encoding="utf-8")
    record = world.skill("pdf")
    home = Path(record.path).parent
    (home / "folder").symlink_to(secret)
    (home / "file").symlink_to(secret / "key")
    (home / "inside").symlink_to("SKILL.md")
    (home / "nowhere").symlink_to("not-there")
    (home / "loop").symlink_to(".")

    done = world.project(record)

    assert done.skipped == tuple(f"{name}: a symbolic link" for name in ("file", "folder", "inside", "loop", "nowhere"))
    assert sorted(tree(done.path)) == [MARKER, "SKILL.md"]
    assert not any(path.is_symlink() for path in done.path.rglob("*"))


def test_a_folder_swapped_for_a_link_while_copying_is_not_followed(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "data.txt").write_text("private", encoding="utf-8")
    record = world.skill("pdf")
    place = world.add(record, "docs/data.txt", "public").parent
    copy = copying.Copier.run

    def swapping(self: copying.Copier) -> None:
        shutil.rmtree(place)
        place.symlink_to(secret)
        copy(self)

    monkeypatch.setattr(copying.Copier, "run", swapping)
    done = world.project(record)

    assert sorted(tree(done.path)) == [MARKER, "SKILL.md"]
    assert [text.partition(":")[0] for text in done.skipped] == ["docs/data.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and sockets in folders are of POSIX systems")
def test_what_is_no_file_is_left_out_and_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    record = world.skill("pdf")
    home = Path(record.path).parent
    os.mkfifo(home / "pipe")
    monkeypatch.chdir(home)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        done = world.project(record)

    assert done.skipped == ("pipe: a pipe, not a file", "socket: a socket, not a file")


@pytest.mark.parametrize("name", ["SKILL.md", "skill.md", "Skill.MD"])
def test_a_nested_skill_is_left_out_and_named(world: World, name: str) -> None:
    record = world.skill("outer")
    world.add(record, f"inner/{name}", skill_text("inner"))
    world.add(record, "inner/deeper/file.txt")
    world.add(record, "docs/file.txt")

    done = world.project(record)

    assert done.skipped == ("inner/: a skill of its own",)
    assert sorted(tree(done.path)) == [MARKER, "SKILL.md", "docs/file.txt"]


def test_folders_of_tools_are_left_out_and_named(world: World) -> None:
    record = world.skill("pdf")
    for folder in (".git", "node_modules", "scripts/__pycache__", ".venv"):
        world.add(record, f"{folder}/file")

    done = world.project(record)

    assert [text.partition(":")[0] for text in done.skipped] == [
        ".git/",
        ".venv/",
        "node_modules/",
        "scripts/__pycache__/",
    ]
    assert sorted(tree(done.path)) == [MARKER, "SKILL.md"]


@pytest.mark.parametrize("name", ["skill.md", "Skill.md", "SKILL.MD"])
def test_the_skills_file_is_called_skill_md_whatever_it_was_called(world: World, name: str) -> None:
    home = world.library / "pdf"
    home.mkdir(parents=True)
    (home / name).write_text(skill_text("pdf"), encoding="utf-8")

    done = world.project(world.record(home / name, "pdf"))

    assert sorted(os.listdir(done.path)) == [MARKER, "SKILL.md"]


@pytest.mark.skipif(sys.platform in {"darwin", "win32"}, reason="the two names are one there")
def test_of_two_skill_files_the_indexed_one_is_copied(world: World) -> None:
    record = world.skill("pdf")
    other = Path(record.path).with_name("skill.md")
    other.write_text("another", encoding="utf-8")

    done = world.project(record)

    assert done.skipped == ("skill.md: a second SKILL.md",)
    assert (done.path / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf")


def test_a_linked_skill_file_is_copied_as_long_as_it_is_what_was_indexed(world: World) -> None:
    text = world.library / "texts" / "pdf.md"
    text.parent.mkdir(parents=True)
    text.write_text(skill_text("pdf"), encoding="utf-8")
    home = world.library / "pdf"
    home.mkdir()
    (home / "SKILL.md").symlink_to(text)
    record = world.record(home / "SKILL.md", "pdf")

    done = world.project(record)
    text.write_text("something else", encoding="utf-8")

    assert (done.path / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf")
    assert not (done.path / "SKILL.md").is_symlink()
    with pytest.raises(ProjectionError, match="its target is not what was indexed"):
        world.project(record)
    assert (done.path / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf")


def test_rights_are_kept_without_those_that_give_others_power(world: World) -> None:
    record = world.skill("pdf")
    modes = {
        "plain": 0o644,
        "run": 0o755,
        "private": 0o600,
        "suid": 0o4755,
        "sgid": 0o2775,
        "open": 0o666,
        "dry": 0o444,
    }
    for name, mode in modes.items():
        world.add(record, name, "x", mode)

    done = world.project(record)

    kept = {name: stat.S_IMODE((done.path / name).stat().st_mode) for name in modes}
    assert kept == modes | {"suid": 0o755, "sgid": 0o775, "open": 0o664, "dry": 0o644}


UNPRIVILEGED = """
import json, os, sys
from pathlib import Path
import serve.harnesses.omp
from tests.projection.conftest import World
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
world = World(Path(sys.argv[1]))
os.chdir(sys.argv[1])
record = world.skill("pdf")
world.add(record, "secret", "x", 0o000)
world.add(record, "closed/file", "x").parent.chmod(0o000)
world.add(record, "sealed/file", "x").parent.chmod(0o444)
done = world.project(record)
for name in ("closed", "sealed"):
    (Path(record.path).parent / name).chmod(0o700)
print(json.dumps([done.skipped, sorted(os.listdir(done.path))]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX systems")
def test_what_cannot_be_read_is_left_out_and_named() -> None:
    # Not below tmp_path: the projecting process gives up its rights and could not get there.
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        environment = {**os.environ, "HOME": place, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        done = run([sys.executable, "-c", UNPRIVILEGED, place], environment=environment)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        [
            "closed/: cannot be listed: permission denied",
            "sealed/file: cannot be looked at: permission denied",
            "secret: cannot be read: permission denied",
        ],
        [MARKER, "SKILL.md"],
    ]


def test_hostile_names_are_left_out_or_copied_as_they_are(world: World) -> None:
    record = world.skill("pdf")
    odd = ["aux.txt", "CON", "trailing.", "x" * 250, "a b", "ünï", "-rf", "'$(id)'", "A.txt", "a.txt"]
    bad = ["new\nline", "bell\x07", "reversed\u202etxt"]
    for name in (*odd, *bad):
        world.add(record, name, name)
    present = set(os.listdir(Path(record.path).parent)) - {"SKILL.md"}

    done = world.project(record)

    assert set(os.listdir(done.path)) - {"SKILL.md", MARKER} == present - set(bad)
    assert done.skipped == (
        "bell\\x07: a name with characters that cannot be shown",
        "new\\nline: a name with characters that cannot be shown",
        "reversed\\u202etxt: a name with characters that cannot be shown",
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes any bytes for a name")
def test_a_name_that_is_no_text_is_left_out_and_named(world: World) -> None:
    record = world.skill("pdf")
    with open(os.fsencode(Path(record.path).parent) + b"/caf\xe9", "wb"):
        pass

    done = world.project(record)

    assert done.skipped == ("caf\\xe9: a name with characters that cannot be shown",)


def test_a_mark_that_a_package_brings_along_is_left_out(world: World) -> None:
    record = world.skill("pdf")
    world.add(record, MARKER, '{"id": "forged"}')

    done = world.project(record)
    marker = read_marker(done.path)

    assert done.skipped == (f"{MARKER}: the name is kept for Retrieval's own mark",)
    assert marker is not None
    assert (marker.id, marker.harness, marker.original) == ("lib:pdf", "omp", str(Path(record.path).parent))


@pytest.mark.requirement("R036")
@pytest.mark.parametrize(
    ("bounds", "what"),
    [({"project_files": 3}, "the package has more than 3 files"), ({"project_bytes": 2000}, "larger than 2000 bytes")],
)
def test_a_package_above_a_limit_is_refused_and_leaves_nothing_behind(
    world: World, bounds: dict[str, int], what: str
) -> None:
    record = world.skill("pdf")
    for number in range(3):
        world.add(record, f"f{number}", "x" * 700)

    with pytest.raises(ProjectionError, match=what) as raised:
        world.project(record, **bounds)

    assert raised.value.where == str(Path(record.path).parent)
    assert "RETRIEVAL_PROJECT_MAX_" in raised.value.next_step
    assert [path for path in world.data.rglob("*") if path.name == "SKILL.md"] == []
    assert not world.layout.staging.exists() or os.listdir(world.layout.staging) == []


@pytest.mark.requirement("R036")
def test_a_package_exactly_at_its_limits_is_copied(world: World) -> None:
    record = world.skill("pdf")
    world.add(record, "one", "12345")
    size = len(skill_text("pdf")) + 5

    assert world.project(record, project_files=2, project_bytes=size).bytes == size


def test_a_file_that_grows_above_the_limit_while_it_is_copied_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = world.skill("pdf")
    place = world.add(record, "log", "x" * 10)
    write = copying._write_all

    def growing(target: int, block: bytes) -> None:
        with place.open("ab") as file:
            file.write(b"y" * 1000)
        write(target, block)

    monkeypatch.setattr(copying, "_write_all", growing)

    with pytest.raises(ProjectionError, match="larger than 5000 bytes"):
        world.project(record, project_bytes=5000)
    assert not world.lane().exists() or world.listed() == []


def test_a_file_that_changes_once_while_it_is_copied_is_copied_as_it_is_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = world.skill("pdf")
    place = world.add(record, "data", b"old" * 100)
    write = copying._write_all
    changed = []

    def change(target: int, block: bytes) -> None:
        write(target, block)
        if block.startswith(b"old") and not changed:
            changed.append(place.write_bytes(b"new"))

    monkeypatch.setattr(copying, "_write_all", change)
    done = world.project(record)

    assert (done.path / "data").read_bytes() == b"new"
    assert done.skipped == ()


def test_a_file_that_never_rests_is_left_out_and_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    record = world.skill("pdf")
    place = world.add(record, "log", b"log")
    write = copying._write_all

    def change(target: int, block: bytes) -> None:
        write(target, block)
        if block.startswith(b"log"):
            place.write_bytes(place.read_bytes() + b"g")

    monkeypatch.setattr(copying, "_write_all", change)
    done = world.project(record)

    assert done.skipped == ("log: kept changing while it was copied",)
    assert sorted(os.listdir(done.path)) == [MARKER, "SKILL.md"]


def test_a_disk_that_keeps_something_else_is_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    record = world.skill("pdf")
    world.add(record, "data", b"data" * 100)
    write = copying._write_all
    monkeypatch.setattr(copying, "_write_all", lambda target, block: write(target, block.replace(b"data", b"dada")))

    with pytest.raises(ProjectionError, match="does not hold what was written"):
        world.project(record)
    assert world.listed() == [] if world.lane().exists() else True


def test_a_skill_that_is_gone_or_no_file_is_an_error_with_its_path(world: World) -> None:
    record = world.skill("pdf")
    Path(record.path).unlink()
    with pytest.raises(ProjectionError, match="cannot be read: no such file") as gone:
        world.project(record)
    Path(record.path).mkdir()
    with pytest.raises(ProjectionError, match="no regular file any more"):
        world.project(record)

    assert gone.value.where == record.path


@pytest.mark.requirement("R033")
@pytest.mark.parametrize(
    ("fields", "harness", "state"),
    [
        ({"harness": "omp", "state": "hidden"}, "omp", "installed"),
        ({"hidden_in": ("omp",)}, "omp", "installed"),
        ({"native_in": ("omp",)}, "omp", "installed"),
        ({"harness": "omp", "state": "hidden"}, "hermes", "copied"),
        ({"harness": "hermes", "state": "archived"}, "hermes", "copied"),
    ],
)
def test_only_what_the_harness_has_itself_is_not_copied(
    world: World, fields: dict[str, object], harness: str, state: str
) -> None:
    record = world.skill("pdf", **fields)

    done = world.project(record, harness)

    assert done.state == state
    assert (done.path == Path(record.path).parent) is (state == "installed")
    assert world.layout.root.exists() is (state == "copied")


def test_a_data_directory_that_is_none_is_an_error_with_its_path(world: World) -> None:
    record = world.skill("pdf")
    world.data.write_text("in the way", encoding="utf-8")

    with pytest.raises(ProjectionError, match="the system refused the copy: not a directory") as raised:
        world.project(record)
    assert raised.value.where.startswith(str(world.data))


FULL = """
import json, os, resource, signal, sys
from pathlib import Path
from tests.projection.conftest import World, tree
from serve.projection.errors import ProjectionError
world = World(Path(sys.argv[1]))
record = world.skill("pdf")
first = world.project(record)
before = tree(first.path)
world.add(record, "large", b"x" * 300_000)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
try:
    world.project(record)
except ProjectionError as error:
    print(json.dumps([error.what, tree(first.path) == before, os.listdir(world.layout.staging)]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX systems")
def test_a_copy_that_the_system_cuts_off_leaves_the_older_one_and_nothing_else(world: World, tmp_path: Path) -> None:
    done = run([sys.executable, "-c", FULL, tmp_path], environment={**os.environ, "PYTHONPATH": str(ROOT)})

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["the system refused the copy: file too large", True, []]


def test_many_threads_project_at_once(world: World) -> None:
    records = [world.skill(f"s{number % 5}") for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(world.project, records))

    assert [one.name for one in done] == [record.name for record in records]
    assert [one.state for one in done].count("copied") == 5
    assert world.listed() == [f"s{number}" for number in range(5)]
