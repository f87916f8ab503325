"""`skills list`, `inspect` and `edit`: all skills with their counts, one with its text, and an edit that loses nothing."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import Command
from tests.support import ROOT
from tests.world import COMMAND, World

pytestmark = pytest.mark.long

APPEND = "import sys; open(sys.argv[-1], 'a', encoding='utf-8').write('\\nOne more line.\\n')"

CATCHES = """
import os, signal, sys
caught = []
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "it would not be asked"
signal.signal(signal.SIGINT, lambda *_: caught.append(1))
print("editing", flush=True)
while not caught:
    signal.sigtimedwait([], 0.01)
open(sys.argv[-1], "a").write("typed before Ctrl-C\\n")
"""


class Typed(NamedTuple):
    """How a command on a terminal ended, and what stood on it."""

    code: int
    screen: str


@pytest.fixture
def editor(tmp_path: Path) -> Callable[[str], str]:
    """Makes an editor out of a few lines of Python; the file to edit is its last argument."""

    def made(code: str) -> str:
        script = tmp_path / "an editor.py"
        script.write_text(code, encoding="utf-8")
        return f"'{sys.executable}' '{script}' --wait"

    return made


def start(world: World, *arguments: str, **variables: str) -> tuple[subprocess.Popen[bytes], int]:
    """A command on a terminal of its own, and the other end of that terminal."""
    outside, inside = pty.openpty()
    environment = {
        **{name: value for name, value in os.environ.items() if name not in {"VISUAL", "EDITOR"}},
        "PYTHONPATH": str(ROOT),
        **world.environment(**variables),
    }
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=world.root,
        env=environment,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    return process, outside


def ended(process: subprocess.Popen[bytes], outside: int) -> Typed:
    screen = b""
    while True:
        try:
            data = os.read(outside, 65536)
        except OSError:  # how Linux says that nobody writes to the terminal any more
            break
        if not data:
            break
        screen += data
    os.close(outside)
    return Typed(process.wait(60), screen.decode("utf-8", "replace").replace("\r\n", "\n"))


def typed(world: World, *arguments: str, **variables: str) -> Typed:
    return ended(*start(world, *arguments, **variables))


def skill_file(world: World, name: str, source: str = "main") -> Path:
    return world.lib(source) / name / "SKILL.md"


# ---------------------------------------------------------------------------------------------------------------- list


@pytest.mark.requirement("R118")
def test_the_list_holds_every_skill_that_was_read_and_counts_them(library: World, command: Command) -> None:
    shown = command(library, "skills", "list", "--json").json

    assert {row["id"]: row["status"] for row in shown["skills"]} == {
        "main:csv-cleaning": "indexed",
        "main:nothing": "review",
        "main:pod-audit": "indexed",
        "main:release-notes": "indexed",
        "main:sql-tuning": "indexed",
        "side:copy": "duplicate",
        "side:index-advice": "indexed",
        "own:release-notes": "suppressed",
    }
    assert shown["count"] == 8
    assert shown["counts"]["status"] == {"duplicate": 1, "indexed": 5, "review": 1, "suppressed": 1}
    assert shown["counts"]["state"] == {"cold": 7, "native": 1}
    assert shown["counts"]["source"] == {"main": 5, "own": 1, "side": 2}
    copy = next(row for row in shown["skills"] if row["id"] == "side:copy")
    assert copy["winner"] == "main:sql-tuning"
    assert copy["path"] == str(library.lib("side") / "copy" / "SKILL.md")


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--source", "side"], ["side:copy", "side:index-advice"]),
        (["--source", "side", "--source", "own"], ["side:copy", "side:index-advice", "own:release-notes"]),
        (["--state", "native"], ["own:release-notes"]),
        (["--harness", "omp"], ["own:release-notes"]),
        (["--harness", "hermes"], []),
        (["--category", "containers-kubernetes"], ["main:pod-audit"]),
        (["--source", "main", "--state", "archived"], []),
    ],
)
def test_filters_narrow_the_list(options: list[str], ids: list[str], library: World, command: Command) -> None:
    shown = command(library, "skills", "list", *options, "--json").json

    assert [row["id"] for row in shown["skills"]] == ids
    assert shown["count"] == len(ids)


@pytest.mark.parametrize(
    ("option", "value", "what"),
    [
        ("--source", "sid", "sid"),
        ("--state", "warm", "there is no state `warm`"),
        ("--category", "kubernets", "there is no category `kubernets`"),
        ("--harness", "vim", "there is no harness `vim`"),
    ],
)
def test_a_filter_that_nothing_could_match_is_an_error(
    option: str, value: str, what: str, library: World, command: Command
) -> None:
    done = command(library, "skills", "list", option, value)

    assert done.code == 2
    assert done.out == ""
    assert what in done.err
    assert "next: " in done.err


def test_people_get_a_table_and_a_line_of_counts(library: World, command: Command) -> None:
    done = command(library, "skills", "list", "--source", "main")

    assert done.code == 0
    assert done.lines[0].split() == ["state", "status", "id", "categories"]
    assert done.lines[1].split()[:3] == ["cold", "indexed", "main:csv-cleaning"]
    assert done.lines[-1] == "5 skills: 4 indexed, 1 review; 5 cold"


def test_an_empty_list_says_so(library: World, command: Command) -> None:
    assert command(library, "skills", "list", "--harness", "hermes").lines == ["0 skills"]


def test_before_a_build_there_is_nothing_to_list(tmp_path: Path, command: Command) -> None:
    done = command(World(tmp_path), "skills", "list")

    assert done.code == 1
    assert "next: run `retrieval build`" in done.err


# ------------------------------------------------------------------------------------------------------------- inspect


def test_inspect_shows_all_that_show_does_the_files_and_the_text(library: World, command: Command) -> None:
    shown = command(library, "show", "main:pod-audit", "--json").json
    inspected = command(library, "skills", "inspect", "main:pod-audit", "--json").json

    assert {key: inspected[key] for key in shown} == shown
    assert inspected["bundled"] == ["notes.md"]
    assert inspected["more_files"] is False
    assert inspected["notes"] == []
    assert inspected["text"] == skill_file(library, "pod-audit").read_text(encoding="utf-8")


def test_inspect_prints_the_text_so_that_it_steers_no_terminal(world: World, command: Command) -> None:
    path = skill_file(world, "pod-audit")
    path.write_bytes(path.read_bytes() + b"\n\x1b]0;owned\x07\tindented \xe2\x80\xae backwards\n")

    done = command(world, "skills", "inspect", "main:pod-audit")

    assert done.code == 0
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert "# pod-audit" in done.lines
    assert "the file was changed after the last build; this is the file as it is now" in done.lines
    assert any(line.split() == ["file", "notes.md"] for line in done.lines)


def test_inspect_of_what_cannot_be_read_has_its_reason_and_fails(world: World, command: Command) -> None:
    skill_file(world, "pod-audit").unlink()

    done = command(world, "skills", "inspect", "main:pod-audit", "--json")

    assert done.code == 1
    assert done.json["text"] == ""
    assert done.json["notes"] == [f"the file is gone since the index was built: {skill_file(world, 'pod-audit')}"]


def test_inspect_and_edit_of_an_unknown_id_suggest_one(library: World, command: Command) -> None:
    for name in ("inspect", "edit"):
        done = command(library, "skills", name, "main:pod-audits")
        assert done.code == 2
        assert "did you mean main:pod-audit?" in done.err


# ---------------------------------------------------------------------------------------------------------------- edit


def test_an_edit_is_read_as_a_build_will_read_it(world: World, editor: Callable[[str], str]) -> None:
    path = skill_file(world, "pod-audit")
    before = path.read_bytes()

    done = typed(world, "skills", "edit", "main:pod-audit", VISUAL=editor(APPEND), EDITOR="no-such-editor")

    assert (done.code, path.read_bytes()) == (0, before + b"\nOne more line.\n")
    (copy,) = (world.data / "edited").iterdir()
    assert copy.read_bytes() == before
    assert str(copy) in done.screen
    assert "pod-audit  main:pod-audit" in done.screen.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "next: run `retrieval build`" in done.screen


def test_the_index_has_an_edit_after_the_next_build(
    world: World, command: Command, editor: Callable[[str], str]
) -> None:
    code = (
        "import sys, pathlib; p = pathlib.Path(sys.argv[-1]); p.write_text(p.read_text().replace('Audit', 'Inspect'))"
    )
    typed(world, "skills", "edit", "main:pod-audit", EDITOR=editor(code))
    world.build()

    assert command(world, "show", "main:pod-audit", "--json").json["description"].startswith("Inspect Kubernetes")


def test_an_edit_that_changes_nothing_leaves_no_copy(world: World, editor: Callable[[str], str]) -> None:
    done = typed(world, "skills", "edit", "main:pod-audit", EDITOR=editor(""))

    assert done.code == 0
    assert "main:pod-audit is as it was" in done.screen
    assert list((world.data / "edited").iterdir()) == []


def test_new_flaws_are_named_and_end_with_3(world: World, editor: Callable[[str], str]) -> None:
    code = "import sys, pathlib; p = pathlib.Path(sys.argv[-1]); p.write_text(p.read_text().replace('\\n---\\n', '\\n', 1))"

    done = typed(world, "skills", "edit", "main:pod-audit", "--json", EDITOR=editor(code))

    assert done.code == 3
    assert '"new": [\n    "unclosed' in done.screen
    assert '"changed": true' in done.screen


def test_what_an_editor_wrote_before_it_failed_stays(world: World, editor: Callable[[str], str]) -> None:
    path = skill_file(world, "pod-audit")
    before = path.read_bytes()

    done = typed(world, "skills", "edit", "main:pod-audit", EDITOR=editor(f"{APPEND}; sys.exit(7)"))

    assert done.code == 1
    assert "the editor ended with code 7" in done.screen
    assert path.read_bytes() == before + b"\nOne more line.\n"
    assert [copy.read_bytes() for copy in (world.data / "edited").iterdir()] == [before]


def test_a_file_that_the_editor_removed_can_be_had_again(world: World, editor: Callable[[str], str]) -> None:
    before = skill_file(world, "pod-audit").read_bytes()

    done = typed(world, "skills", "edit", "main:pod-audit", EDITOR=editor("import sys, os; os.unlink(sys.argv[-1])"))

    (copy,) = (world.data / "edited").iterdir()
    assert done.code == 1
    assert copy.read_bytes() == before
    assert f"next: the text as it was is {copy}" in done.screen


def test_ctrl_c_is_the_editors_alone(world: World, editor: Callable[[str], str]) -> None:
    process, outside = start(world, "skills", "edit", "main:pod-audit", EDITOR=editor(CATCHES))
    seen = b""
    while b"editing" not in seen:
        seen += os.read(outside, 4096)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody in the foreground gets it

    done = ended(process, outside)

    assert done.code == 0, done.screen
    assert skill_file(world, "pod-audit").read_text(encoding="utf-8").endswith("typed before Ctrl-C\n")


def test_a_kill_in_the_middle_of_an_edit_leaves_both_texts(world: World, editor: Callable[[str], str]) -> None:
    before = skill_file(world, "pod-audit").read_bytes()
    code = f"{APPEND}\nprint('editing', flush=True)\nsys.stdin.read()"
    process, outside = start(world, "skills", "edit", "main:pod-audit", EDITOR=editor(code))
    seen = b""
    while b"editing" not in seen:
        seen += os.read(outside, 4096)
    os.killpg(process.pid, signal.SIGKILL)
    ended(process, outside)

    assert [copy.read_bytes() for copy in (world.data / "edited").iterdir()] == [before]
    assert skill_file(world, "pod-audit").read_bytes() == before + b"\nOne more line.\n"


def test_the_newest_fifty_texts_are_kept(world: World, editor: Callable[[str], str]) -> None:
    folder = world.data / "edited"
    folder.mkdir()
    for number in range(60):
        (folder / f"20200101-{number:06}-old.md").write_text("old", encoding="utf-8")

    typed(world, "skills", "edit", "main:pod-audit", EDITOR=editor(APPEND))

    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 50
    assert names[0] == "20200101-000011-old.md"
    assert "pod-audit" in names[-1]


def test_a_link_is_edited_where_it_leads(world: World, editor: Callable[[str], str]) -> None:
    elsewhere = world.lib("main") / "shelf.md"
    path = skill_file(world, "pod-audit")
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)
    world.build()

    done = typed(world, "skills", "edit", "main:pod-audit", EDITOR=editor(APPEND))

    assert done.code == 0, done.screen
    assert path.is_symlink()
    assert elsewhere.read_text(encoding="utf-8").endswith("One more line.\n")


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.requirement("R120")
def test_a_skill_that_a_harness_keeps_is_refused_and_stays(library: World, command: Command) -> None:
    before = skill_file(library, "release-notes", "own").read_bytes()

    done = command(library, "skills", "edit", "own:release-notes")

    assert done.code == 2
    assert "error: own:release-notes is native: omp keeps it itself" in done.err
    assert "next: change it with the means of omp itself" in done.err
    assert skill_file(library, "release-notes", "own").read_bytes() == before


@pytest.mark.parametrize(
    ("folder", "state", "expected"),
    [
        ("home/skills", "native", "`hermes curator archive pod-audit` puts it away"),
        ("home/skills/.archive", "archived", "`hermes curator restore pod-audit`"),
        ("home/profiles/coder/skills/.archive", "archived", "`hermes -p coder curator restore pod-audit`"),
    ],
)
@pytest.mark.requirement("R120")
def test_a_skill_of_hermes_points_to_its_curator(
    folder: str, state: str, expected: str, world: World, command: Command
) -> None:
    place = world.root / folder
    shutil.copytree(world.lib("main") / "pod-audit", place / "pod-audit")
    block = f'[[sources]]\nname = "h"\npath = "{place}"\nstate = "{state}"\nharness = "hermes"\n'
    world.config.write_text(block, encoding="utf-8")
    world.build()

    done = command(world, "skills", "edit", "h:pod-audit")

    assert done.code == 2
    assert expected in done.err


def test_an_archive_of_nobody_is_refused_too(world: World, command: Command) -> None:
    text = world.config.read_text(encoding="utf-8").replace('state = "cold"', 'state = "archived"')
    world.config.write_text(text, encoding="utf-8")
    world.build()

    done = command(world, "skills", "edit", "main:pod-audit")

    assert done.code == 2
    assert "is archived: put away" in done.err


def test_a_harness_that_lies_within_a_library_is_refused_by_either_id(world: World, command: Command) -> None:
    own = world.lib("main") / "own"
    own.mkdir()
    shutil.move(world.lib("main") / "pod-audit", own / "pod-audit")
    with world.config.open("a", encoding="utf-8") as file:
        file.write(f'\n[[sources]]\nname = "own"\npath = "{own}"\nstate = "native"\nharness = "omp"\n')
    world.build()

    for skill in ("own:pod-audit", "main:own/pod-audit"):
        done = command(world, "skills", "edit", skill)
        assert done.code == 2
        assert f"error: {skill} is native: omp keeps it itself" in done.err


def test_what_could_not_be_indexed_says_why(library: World, command: Command) -> None:
    done = command(library, "skills", "edit", "main:broken")

    assert done.code == 1
    assert "dangling_link" in done.err


def test_without_a_terminal_nothing_is_edited(world: World, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "true")
    done = command(world, "skills", "edit", "main:pod-audit")

    assert done.code == 2
    assert "error: there is no terminal to edit on" in done.err
    assert not (world.data / "edited").exists()


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("", "no editor is set"),
        ("no-such-editor -w", "EDITOR names `no-such-editor`, which is no program"),
        ("'unclosed", "EDITOR cannot be understood"),
    ],
)
def test_an_editor_that_is_none_is_an_error(value: str, what: str, world: World) -> None:
    done = typed(world, "skills", "edit", "main:pod-audit", EDITOR=value)

    assert done.code in {1, 2}
    assert what in done.screen
    assert "next: " in done.screen


def test_a_read_only_file_is_said_even_to_who_may_write_everything(world: World, command: Command) -> None:
    skill_file(world, "pod-audit").chmod(0o444)

    done = command(world, "skills", "edit", "main:pod-audit")

    assert done.code == 1
    assert "error: the file is read-only" in done.err
    assert str(skill_file(world, "pod-audit")) in done.err


def test_a_file_that_is_gone_is_said(world: World, command: Command) -> None:
    skill_file(world, "pod-audit").unlink()

    done = command(world, "skills", "edit", "main:pod-audit")

    assert done.code == 1
    assert "error: the file cannot be reached: No such file or directory" in done.err


def test_two_edits_at_once_keep_both_texts(world: World, editor: Callable[[str], str]) -> None:
    command = editor(APPEND)
    names = ("pod-audit", "sql-tuning")
    threads = [
        threading.Thread(target=typed, args=(world, "skills", "edit", f"main:{name}"), kwargs={"EDITOR": command})
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(skill_file(world, name).read_text(encoding="utf-8").endswith("One more line.\n") for name in names)
    assert len(list((world.data / "edited").iterdir())) == 2
