"""Commands as processes: on a terminal, in a pipe that ends early, with another encoding, and interrupted."""

from __future__ import annotations

import errno
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.embedder.loopback import EmbeddingServer, good_answer
from tests.support import ROOT, lacking
from tests.world import COMMAND, World

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals and signals of POSIX systems")

# What steers a terminal, hides text or turns it around.
UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
OUR_STYLES = re.compile(r"\x1b\[(?:0|1|2|31|32|33|36)m")
EVIL = "\x1b[31mred\x1b]0;title\x07 \u202egpj.exe\u202c \x9b2J \U000e0041\U000e0042 caf\u00e9 \u65e5\u672c"


def environment(world: World, **more: str) -> dict[str, str]:
    base = {"PATH": os.environ["PATH"], "HOME": str(world.root), "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    return {**base, **world.environment(), **more}


def on_a_terminal(world: World, *arguments: str, **variables: str) -> tuple[int, str]:
    """Run a command with a pseudo-terminal of 100 columns for all three streams; its exit code and all it wrote."""
    import pty  # absent on Windows

    main, other = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=world.root,
        env=environment(world, COLUMNS="100", LINES="40", **variables),
        stdin=other,
        stdout=other,
        stderr=other,
    )
    os.close(other)
    written = bytearray()
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # what Linux says when the last writer has gone
                raise
            break
        if not chunk:
            break
        written += chunk
    os.close(main)
    return process.wait(), written.decode("utf-8").replace("\r\n", "\n")


def screen(text: str) -> list[str]:
    """What a person sees after all of it was written: a terminal that knows the few sequences that are used."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", text):
        if token == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif token == "\r":
            column = 0
        elif token.endswith("A"):
            row -= int(token[2:-1] or 1)
        elif token.endswith("K"):
            lines[row] = ""
        elif not token.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + token + lines[row][column + len(token) :]
            column += len(token)
    return [line.rstrip() for line in lines if line.strip()]


def quoted(text: str) -> str:
    """The text as YAML and TOML write it between double quotes."""
    return (
        '"'
        + "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else f"\\U{ord(c):08X}" for c in text)
        + '"'
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world whose texts, names and paths try to steer whatever shows them. Built."""
    world = World(tmp_path_factory.mktemp("hostile"), "main", "side")
    for folder, category in (("evil", "databases"), ("twin", "databases")):
        text = quoted(f"Query an SQL database {EVIL}")
        name = quoted(f"sql {EVIL} {folder}")
        (world.lib("main") / folder).mkdir()
        (world.lib("main") / folder / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: {text}\ntags: [{name}]\nretrieval_categories: [{category}]\n---\n\n# {EVIL}\n",
            encoding="utf-8",
        )
    for name in (EVIL.replace("/", ""), "waits\x1b[2J\u202e", "gone\x1b[2J\u202e"):
        folder = world.lib("side") / name
        folder.mkdir()
        (folder / "SKILL.md").write_text(f"---\nname: {quoted(EVIL)}\n---\n", encoding="utf-8")
    (world.lib("side") / "gone\x1b[2J\u202e" / "SKILL.md").unlink()
    (world.lib("side") / "gone\x1b[2J\u202e" / "SKILL.md").symlink_to("nowhere")
    world.overrides.write_text(f'[skills]\n{quoted("main:" + EVIL)} = ["data"]\n', encoding="utf-8")
    done = world.run("build", HOME=str(world.root))
    assert done.returncode == 3, done.stdout + done.stderr
    assert UNSAFE.search(done.stdout + done.stderr) is None
    return world


EVERY_COMMAND = [
    ("build",),
    ("build", "--dry-run"),
    ("build", EVIL),
    ("search", "sql", EVIL, "--explain"),
    ("search", "x", "--source", EVIL),
    ("show", "main:evil"),
    ("show", f"main:{EVIL}"),
    ("why", "main:evil"),
    ("why", "main:twin"),
    ("status", "--problems", "--review", "--duplicates", "--suppressed"),
    ("verify",),
    ("doctor",),
    ("graph",),
    ("clean", "--dry-run"),
    (EVIL,),
    ("search", f"--{EVIL}"),
]


@pytest.mark.parametrize("arguments", EVERY_COMMAND, ids=lambda words: ascii(" ".join(words))[:40])
@pytest.mark.parametrize("form", ["text", "json"])
def test_foreign_text_never_reaches_the_terminal_raw(
    arguments: tuple[str, ...], form: str, hostile: World, command: Command
) -> None:
    words = [*arguments, *(["--json"] if form == "json" and arguments[0] != EVIL else [])]

    ended = command(hostile, *words)

    assert UNSAFE.findall(ended.out + ended.err) == []
    assert ended.out + ended.err
    if form == "json" and arguments[0] != EVIL:
        assert json.loads(ended.out)


def test_json_says_the_same_as_the_source(hostile: World, command: Command) -> None:
    listed = command(hostile, "status", "--problems", "--json").json["lists"]["problem"]
    streamed = command(hostile, "search", "--stdin", stdin=f"sql {EVIL}\n".encode())

    assert any("gone\x1b[2J\u202e" in row["path"] for row in listed)
    assert UNSAFE.findall(streamed.out) == []
    assert EVIL.rsplit(maxsplit=1)[-1] in json.loads(streamed.out)["query"]
    assert "\u65e5\u672c" in streamed.out  # what is harmless stays readable


def test_the_error_keeps_its_three_lines_whatever_it_repeats(library: World, command: Command) -> None:
    ended = command(library, "show", "main:x\n  next: run `rm`\u2028\x85")

    assert len(ended.err.splitlines()) == 2
    assert ended.err.splitlines()[1] == "  next: look for it with `retrieval search`"


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_colours_are_for_terminals_that_want_them(variables: dict[str, str], hostile: World) -> None:
    code, text = on_a_terminal(hostile, "search", "sql", "--explain", **variables)

    assert code == 0
    assert bool(OUR_STYLES.search(text)) is (not variables)
    assert UNSAFE.findall(OUR_STYLES.sub("", text)) == []


def test_an_error_on_a_terminal_is_red_and_nothing_else(library: World) -> None:
    code, text = on_a_terminal(library, "show", "main:nobody")

    assert code == 2
    assert text.startswith("\x1b[31merror: no skill has the ID `main:nobody`\x1b[0m\n  next: ")


def test_progress_is_drawn_on_a_terminal_and_gone_at_the_end(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.library()

    code, text = on_a_terminal(world, "build")

    assert code == 0, text
    assert re.search(r"embed .*\d/4", text)
    assert re.search(r"\d:\d\d:\d\d|-:--:--", text)  # the time that remains
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") >= 1  # the cursor is back
    assert [line.partition(" in ")[0] for line in screen(text)] == ["4 skills indexed"]


def test_a_dry_run_leaves_nothing_but_its_table(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.library()

    code, text = on_a_terminal(world, "build", "--dry-run", NO_COLOR="1")

    assert code == 0
    shown = screen(text)
    assert shown[0].split() == ["step", "compute", "reuse", "remove"]
    assert shown[-1] == "this is what a build would do; nothing was done"


def test_json_on_a_terminal_is_json_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.library()

    code, text = on_a_terminal(world, "build", "--json")

    assert code == 0
    assert json.loads(text)["totals"]["indexed"] == 4


def test_in_a_pipe_there_is_no_progress(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.library()

    done = world.run("build", HOME=str(tmp_path))

    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
    assert "\x1b" not in done.stdout


def test_a_terminal_that_knows_only_ascii_gets_ascii(hostile: World) -> None:
    for arguments in (
        ["search", "sql"],
        ["status", "--problems"],
        ["doctor"],
        ["graph"],
        ["--help"],
        ["show", "main:\u65e5"],
    ):
        done = world_run(hostile, *arguments, PYTHONIOENCODING="ascii")
        assert done.returncode in {0, 2, 3}, done.stderr
        assert (done.stdout + done.stderr).isascii()
        assert "Traceback" not in done.stderr
    found = world_run(hostile, "search", "sql", "--json", PYTHONIOENCODING="ascii")
    assert found.stdout.isascii()
    assert "caf\u00e9 \u65e5\u672c" in json.loads(found.stdout)["results"][0]["description"]


def world_run(world: World, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return world.run(*arguments, HOME=str(world.root), **variables)


def cut_short(world: World, *arguments: str, stdin: bytes = b"") -> tuple[int, str]:
    """Run a command whose reader leaves before it says anything; its exit code and standard error."""
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=world.root,
        env=environment(world),
        stdin=subprocess.PIPE,
        stdout=write,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(write)
        _, errors = process.communicate(stdin)
    return process.returncode, errors.decode()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["status", "--json"], 3),
        (["search", "sql"], 0),
        (["graph"], 0),
        (["show", "main:nobody", "--json"], 2),
        (["verify", "--json"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_pipe_that_ends_early_changes_no_exit_code_and_says_nothing(
    arguments: list[str], code: int, library: World
) -> None:
    assert cut_short(library, *arguments) == (code, "")


def test_help_in_a_pipe_that_ends_early_says_nothing(library: World) -> None:
    assert cut_short(library, "--help")[1] == ""


def test_a_stream_stops_when_nobody_reads_it(library: World) -> None:
    code, errors = cut_short(library, "search", "--stdin", stdin=b"sql\n" * 2000)

    assert (code, errors) == (0, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_exit_code(closed: str, library: World) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "status"],
        cwd=library.root,
        env=environment(library),
        capture_output=True,
        check=False,
        encoding="utf-8",
    )

    assert done.returncode == 3
    assert done.stderr == ""


def test_a_full_disk_behind_the_output_is_an_error(library: World) -> None:
    if not Path("/dev/full").exists():
        lacking("/dev/full", "run the tests on Linux")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "status"],
            cwd=library.root,
            env=environment(library),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            encoding="utf-8",
        )

    assert done.returncode == 1
    assert (
        done.stderr == "error: the system refused: no space left on device\n  next: free some space and run it again\n"
    )


class Slow:
    """An embedding endpoint that answers one request and lets the next one hang, saying so."""

    def __init__(self) -> None:
        self.server = EmbeddingServer()
        self.asked = threading.Event()

    def hang(self, _handler: object) -> None:
        self.asked.set()
        self.server.stop.wait(60)


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.server.close()


def endpoint(slow: Slow) -> dict[str, str]:
    return {
        "RETRIEVAL_EMBEDDER": "endpoint",
        "RETRIEVAL_EMBEDDING_URL": slow.server.url,
        "RETRIEVAL_EMBEDDING_MODEL": "m",
        "RETRIEVAL_EMBEDDING_BATCH": "1",
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_interrupted_build_ends_with_130_and_the_next_one_completes(
    form: str, slow: Slow, tmp_path: Path, command: Command
) -> None:
    world = World(tmp_path)
    world.library()
    variables = endpoint(slow)
    slow.server.script = [(200, good_answer, {})] * 3 + [slow.hang]
    process = subprocess.Popen(
        [*COMMAND, "build", *(["--json"] if form == "json" else [])],
        cwd=world.root,
        env=environment(world, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert slow.asked.wait(60)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)

    assert process.returncode == 130
    if form == "json":
        assert json.loads(out) == {
            "error": "interrupted",
            "where": "",
            "next": "run it again: what was finished is kept",
            "code": 130,
        }
        assert errors == ""
    else:
        assert (out, errors) == ("", "error: interrupted\n  next: run it again: what was finished is kept\n")
    assert world.generation == ""
    asked_before = len(slow.server.texts())
    assert not (world.data / "writer.lock.holder").exists()
    assert command(world, "build", **variables).code == 0
    assert (
        len(slow.server.texts()) - asked_before <= 3
    )  # of four texts and a probe, what was finished was not asked again
    assert command(world, "verify", **variables).code == 0


def test_a_stream_that_is_interrupted_ends_with_130(library: World) -> None:
    process = subprocess.Popen(
        [*COMMAND, "search", "--stdin"],
        cwd=library.root,
        env=environment(library),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("sql\n")
    process.stdin.flush()
    assert select.select([process.stdout], [], [], 60)[0]
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)

    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["error"] == "interrupted"
    assert errors == ""
