"""Each exit code, with everything that is said on the way out: as text and as JSON."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pipeline.cli.codes import MEANINGS
from pipeline.engine.lock import WriterLock
from serve.errors import ExitCode
from tests.chroma.support import free_port
from tests.cli.conftest import Command, Ended
from tests.world import World


def test_every_code_has_its_meaning() -> None:
    assert list(MEANINGS) == list(ExitCode)


def test_0_when_it_is_done_and_when_it_is_current(world: World, command: Command) -> None:
    world.skill("index-advice", "Advise on database indexes. Use when a table grows.")

    did = command(world, "build")
    again = command(world, "build")

    assert (did.code, did.err, again.code, again.err) == (0, "", 0, "")
    assert did.out.startswith("5 skills indexed in ")
    assert again.out.startswith("5 skills indexed, nothing new (")


@pytest.mark.parametrize("arguments", [("search", "anything"), ("verify",)])
def test_1_when_there_is_no_index(arguments: tuple[str, ...], tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)

    ended = command(world, *arguments)
    as_json = command(world, *arguments, "--json")

    where = str(world.data / "snapshots")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"error: there is no index yet\n  at {where}\n  next: run `retrieval build`\n"
    assert (as_json.code, as_json.err) == (1, "")
    assert as_json.json == {
        "error": "there is no index yet",
        "where": where,
        "next": "run `retrieval build`",
        "code": 1,
    }


def test_who_has_no_configuration_either_is_told_to_begin_with_it(tmp_path: Path, command: Command) -> None:
    ended = command(tmp_path, "search", "anything", RETRIEVAL_HOME=str(tmp_path / "data"))

    assert ended.code == 1
    assert ended.err.splitlines()[-1] == "  next: run `retrieval init`, then `retrieval build`"


def test_1_when_the_system_refuses(world: World, command: Command) -> None:
    target = world.config / "sources.toml"  # a file is no folder

    ended = command(world, "init", "--config", str(target))
    as_json = command(world, "init", "--config", str(target), "--json")

    what, where, next_step = three_lines(ended)
    assert (ended.code, ended.out, what) == (1, "", "the system refused: not a directory")
    assert where.startswith(str(world.config))
    assert next_step == "run `retrieval doctor`"
    assert (as_json.code, as_json.json["error"], as_json.err) == (1, what, "")


USAGE = {
    ("nosuch",): ("no such command 'nosuch'", "retrieval", "run `retrieval --help`"),
    ("buidl",): ("no such command 'buidl'. Did you mean 'build'?", "retrieval", "run `retrieval --help`"),
    ("build", "--bogus"): ("no such option: --bogus", "retrieval build", "run `retrieval build --help`"),
    ("show",): ("missing argument 'ID'", "retrieval show", "run `retrieval show --help`"),
    ("search", "x", "--limit", "0"): (
        "invalid value for '--limit': 0 is not in the range 1<=x<=200",
        "retrieval search",
        "run `retrieval search --help`",
    ),
    ("search",): ("the query is empty", "", "say in a few words what you need"),
    ("search", "x", "--harness", "nobody"): (
        "there is no harness `nobody`",
        "",
        "use one of: hermes, omp, claude, codex, opencode, gemini",
    ),
    ("build", "mian"): ('there is no source "mian"', "", 'did you mean "main"?'),
    ("build", "--wait", "nan"): ("--wait is not a number", "", "give it seconds"),
    ("graph", "--format", "svg"): ("there is no format `svg`", "", "use text or dot"),
    ("show", "main:sql"): ("no skill has the ID `main:sql`", "", "did you mean main:sql-tuning?"),
}


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_2_when_the_command_line_is_wrong(arguments: tuple[str, ...], library: World, command: Command) -> None:
    what, where, next_step = USAGE[arguments]

    ended = command(library, *arguments)
    as_json = command(library, *arguments, "--json")

    at = f"  at {where}\n" if where else ""
    assert (ended.code, ended.out, ended.err) == (2, "", f"error: {what}\n{at}  next: {next_step}\n")
    assert (as_json.code, as_json.err) == (2, "")
    assert as_json.json == {"error": what, "where": where, "next": next_step, "code": 2}


def test_2_when_the_configuration_is_wrong(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.config.write_text('[[sources]]\nname = "main"\npth = "x"\n', encoding="utf-8")

    for words in (["build"], ["status"], ["verify"], ["graph"], ["show", "a:b"], ["why", "a:b"]):
        ended = command(world, *words)
        assert ended.code == 2
        assert (
            ended.err
            == f'error: a [[sources]] block has an unknown key "pth"\n  at {world.config}:3\n  next: did you mean "path"?\n'
        )


def test_a_word_behind_two_dashes_is_no_option(library: World, command: Command) -> None:
    ended = command(library, "search", "--source", "nobody", "--", "--json")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: no indexed skill has the source `nobody`\n")


def test_3_when_something_waits_or_could_not_be_read(library: World, command: Command) -> None:
    ended = command(library, "build")

    assert (ended.code, ended.err) == (3, "")
    assert ended.lines[1:] == [
        "  1 folded into another as duplicates: retrieval status --duplicates",
        "  1 left to the harness that shows them: retrieval status --suppressed",
        "  1 waiting for a category, out of every answer until then: retrieval status --review",
        "  1 not indexed because of a problem: retrieval status --problems",
    ]
    assert command(library, "build", "--json").json["exit_code"] == 3
    assert command(library, "status").code == 3


def endpoint() -> dict[str, str]:
    """An embedding endpoint at a port where nobody listens."""
    return {
        "RETRIEVAL_EMBEDDER": "endpoint",
        "RETRIEVAL_EMBEDDING_URL": f"http://127.0.0.1:{free_port()}/v1",
        "RETRIEVAL_EMBEDDING_MODEL": "m",
        "RETRIEVAL_EMBEDDING_RETRIES": "0",
    }


def three_lines(ended: Ended) -> tuple[str, str, str]:
    what, where, next_step = ended.err.splitlines()
    assert what.startswith("error: ")
    assert where.startswith("  at ")
    assert next_step.startswith("  next: ")
    return what.removeprefix("error: "), where.removeprefix("  at "), next_step.removeprefix("  next: ")


def test_4_when_the_embedding_endpoint_does_not_answer(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.library()
    variables = endpoint()

    ended = command(world, "build", **variables)
    as_json = command(world, "build", "--json", **variables)

    assert (ended.code, ended.out) == (4, "")
    what, where, _ = three_lines(ended)
    assert "does not answer" in what
    assert variables["RETRIEVAL_EMBEDDING_URL"] in where
    assert (as_json.code, as_json.json["code"]) == (4, 4)
    assert world.generation == ""


def test_4_when_the_chroma_server_does_not_answer(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.library()
    port = str(free_port())

    ended = command(world, "build", RETRIEVAL_CHROMA_MODE="server", RETRIEVAL_CHROMA_PORT=port)

    assert (ended.code, ended.out) == (4, "")
    assert port in three_lines(ended)[1]


def test_5_when_another_run_holds_the_lock(world: World, command: Command) -> None:
    other = WriterLock(world.data / "writer.lock")
    other.acquire(0)
    try:
        for words in (["build", "--wait", "0"], ["verify"], ["graph"], ["clean"]):
            ended = command(world, *words, RETRIEVAL_LOCK_TIMEOUT="0")
            what, where, next_step = three_lines(ended)
            assert (ended.code, ended.out) == (5, "")
            assert what.startswith(f"another run still writes to this data directory: process {os.getpid()} (")
            assert where == str(world.data / "writer.lock")
            assert next_step == "wait until it ends, or give RETRIEVAL_LOCK_TIMEOUT more seconds"
        as_json = command(world, "build", "--wait", "0.1", "--json")
    finally:
        other.release()
    assert as_json.code == 5
    assert as_json.json["holder"]["pid"] == os.getpid()
    assert "after 0.1 s of waiting" in as_json.json["error"]


def test_the_run_that_waits_goes_on_when_the_lock_is_free(world: World, command: Command) -> None:
    other = WriterLock(world.data / "writer.lock")
    other.acquire(0)
    other.release()

    assert command(world, "build", "--wait", "5").code == 0


@pytest.mark.parametrize("arguments", [("search", "anything"), ("verify",)])
def test_6_when_the_index_is_of_another_contract(arguments: tuple[str, ...], world: World, command: Command) -> None:
    path = world.data / "snapshots" / world.generation / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"contract":1', b'"contract":99'))

    ended = command(world, *arguments)

    assert (ended.code, ended.out) == (6, "")
    assert ended.err == (
        "error: the index follows contract 99, this program reads contract 1\n"
        f"  at {path}\n"
        "  next: run `retrieval build` with the version of Retrieval that answers\n"
    )
    assert command(world, *arguments, "--json").json["code"] == 6
    assert command(world, "status").code == 1


def test_a_fault_of_the_program_shows_its_traceback_and_is_an_error_too(
    library: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise KeyError("no\x1b[31m\u202ewhere")

    monkeypatch.setattr("pipeline.admin.inspect.show", broken)

    ended = command(library, "show", "main:sql-tuning")
    as_json = command(library, "show", "main:sql-tuning", "--json")

    assert ended.code == as_json.code == 1
    assert ended.err.startswith("Traceback (most recent call last):\n")
    assert ended.err.splitlines()[-2] == "error: a fault in Retrieval itself: KeyError: 'no\\x1b[31m\\u202ewhere'"
    assert ended.err.splitlines()[-1] == "  next: run `retrieval doctor`; report the fault if that finds nothing"
    assert as_json.json["error"].startswith("a fault in Retrieval itself: KeyError")


def test_without_the_building_side_it_says_what_to_install(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)

    ended = command(tmp_path, "--help")

    assert ended.code == 2
    assert ended.err.splitlines()[-1] == "  next: install `retrieval[build]`"
