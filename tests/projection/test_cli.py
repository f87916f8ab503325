"""`retrieval projected list`, `clear` and `repair` as a person and as a script use them."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import typer

import pipeline.cli.app
from pipeline.cli import checklist, projected_app, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.projection.conftest import World


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Terminal(io.StringIO):
    """Standard input or output of somebody who sits before a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def projected(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Runs `retrieval projected …` in the world; with `typed`, on a terminal where that is typed."""
    app = typer.Typer()
    app.add_typer(projected_app.app)
    app.callback()(lambda: None)
    monkeypatch.setattr(pipeline.cli.app, "app", app)
    monkeypatch.setenv("RETRIEVAL_HOME", str(world.data))
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: str, typed: str | None = None) -> Ended:
        with monkeypatch.context() as context:
            shown = Terminal()
            context.setattr(sys, "stdin", io.StringIO() if typed is None else Terminal(typed))
            if typed is not None:
                context.setattr(sys, "stdout", shown)
            capsys.readouterr()
            code = run(["projected", *arguments])
            out, err = capsys.readouterr()
        return Ended(code, shown.getvalue() or out, err)

    return call


@pytest.fixture
def copies(world: World) -> None:
    for name, harness in (("pdf", "omp"), ("docx", "omp"), ("pdf", "hermes")):
        world.project(world.skill(name), harness)


@pytest.mark.requirement("R110")
@pytest.mark.usefixtures("copies")
def test_list_shows_every_copy(projected: Callable[..., Ended], world: World) -> None:
    table = projected("list")
    listed = projected("list", "--harness", "omp", "--json")

    assert table.code == 0
    assert [line.split()[:3] for line in table.out.splitlines()] == [
        ["harness", "name", "state"],
        ["hermes", "pdf", "ok"],
        ["omp", "docx", "ok"],
        ["omp", "pdf", "ok"],
    ]
    assert [item["id"] for item in listed.json["projections"]] == ["lib:docx", "lib:pdf"]
    assert listed.json["projections"][0] == {
        "id": "lib:docx",
        "name": "docx",
        "harness": "omp",
        "path": str(world.lane("omp") / "docx"),
        "original": str(world.library / "docx"),
        "files": 1,
        "bytes": listed.json["projections"][0]["bytes"],
        "state": "ok",
        "skipped": [],
        "projected_at": listed.json["projections"][0]["projected_at"],
    }


@pytest.mark.usefixtures("copies")
def test_list_says_by_its_exit_code_that_something_is_wrong(projected: Callable[..., Ended], world: World) -> None:
    (world.lane("omp") / "pdf" / "SKILL.md").write_text("changed", encoding="utf-8")

    assert projected("list").code == 3
    assert projected("list", "--harness", "hermes").code == 0


def test_without_copies_every_command_is_done_at_once(projected: Callable[..., Ended], world: World) -> None:
    assert projected("list").out == "there are no projected copies\n"
    assert projected("clear", "--all").out == "there is nothing to remove\n"
    assert projected("repair").out == "there is nothing to repair\n"
    assert projected("clear", typed="").out == "there are no projected copies\n"
    assert not world.layout.root.exists()


@pytest.mark.usefixtures("copies")
def test_clear_removes_exact_ids_and_tells_how_to_reload(projected: Callable[..., Ended], world: World) -> None:
    done = projected("clear", "lib:pdf")

    assert done.code == 0
    assert done.out.splitlines() == [
        f"removed {world.lane('hermes') / 'pdf'}  lib:pdf",
        f"removed {world.lane('omp') / 'pdf'}  lib:pdf",
        "in a running session of Hermes Agent: /reload-skills",
        "in a running session of OMP: /reload-plugins",
    ]
    assert world.listed("omp") == ["docx"]


@pytest.mark.usefixtures("copies")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "nothing says which copies are meant, and there is no terminal to ask on"),
        (("--harness", "omp"), "nothing says which copies are meant, and there is no terminal to ask on"),
        (("lib:pdf", "--all"), "both IDs and --all were given"),
        (("lib:nope",), "there is no projected copy of lib:nope"),
        (("--all", "--harness", "emacs"), "there is no harness `emacs`"),
    ],
)
def test_clear_refuses_what_is_not_clear_and_removes_nothing(
    projected: Callable[..., Ended], world: World, arguments: tuple[str, ...], error: str
) -> None:
    done = projected("clear", *arguments)
    as_json = projected("clear", *arguments, "--json")

    assert done.code == as_json.code == 2
    assert done.err.splitlines()[0] == f"error: {error}"
    assert as_json.json["error"] == error
    assert world.listed("omp") == ["docx", "pdf"]


@pytest.mark.usefixtures("copies")
def test_clear_all_of_one_harness_in_json_after_a_dry_run(projected: Callable[..., Ended], world: World) -> None:
    planned = projected("clear", "--all", "--harness", "omp", "--dry-run", "--json")
    assert world.listed("omp") == ["docx", "pdf"]
    done = projected("clear", "--all", "--harness", "omp", "--json")

    assert planned.json | {"dry_run": False} == done.json
    assert [item["id"] for item in done.json["removed"]] == ["lib:docx", "lib:pdf"]
    assert (world.listed("omp"), world.listed("hermes")) == ([], ["pdf"])


@pytest.mark.usefixtures("copies")
def test_clear_says_by_its_exit_code_that_a_named_copy_had_to_stay(
    projected: Callable[..., Ended], world: World
) -> None:
    (world.lane("omp") / "docx" / ".retrieval.json").unlink()

    done = projected("clear", "lib:docx")

    assert done.code == 3
    assert f"left alone: {world.lane('omp') / 'docx'}: " in done.out


@pytest.mark.usefixtures("copies")
@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("2\n\n", {"hermes": ["pdf"], "omp": ["pdf"]}),
        ("1-3\n2\n\n", {"hermes": [], "omp": ["docx"]}),
        ("a\n\n", {"hermes": [], "omp": []}),
        ("a\nn\n\n", {"hermes": ["pdf"], "omp": ["docx", "pdf"]}),
        ("a\nq\n", {"hermes": ["pdf"], "omp": ["docx", "pdf"]}),
        ("a\n", {"hermes": ["pdf"], "omp": ["docx", "pdf"]}),
        ("9\nx\n1 3\n\n", {"hermes": [], "omp": ["docx"]}),
    ],
)
def test_on_a_terminal_copies_are_ticked(
    projected: Callable[..., Ended], world: World, typed: str, left: dict[str, list[str]]
) -> None:
    done = projected("clear", typed=typed)

    assert done.code == 0
    assert {harness: world.listed(harness) for harness in left} == left


@pytest.mark.parametrize(
    ("answer", "places"),
    [
        *(("1", {0}), ("1,3", {0, 2}), ("2-4", {1, 2, 3}), ("a", {0, 1, 2, 3}), ("n", set())),
        *(("4-2", None), ("0", None), ("5", None), ("1-", None), ("b", None), ("9999999999", None)),
    ],
)
def test_an_answer_names_lines_or_is_refused(answer: str, places: set[int] | None) -> None:
    assert checklist.toggled(answer, 4) == places


@pytest.mark.usefixtures("copies")
def test_repair_says_what_it_did(projected: Callable[..., Ended], world: World) -> None:
    for path in world.layout.root.glob("manifest.sqlite3*"):
        path.unlink()
    world.layout.manifest.touch()
    (world.layout.staging / "1-x").mkdir()
    (world.lane("omp") / "mine").mkdir()

    done = projected("repair")

    assert done.code == 0
    assert done.out.splitlines() == [
        f"listed again: {world.lane('hermes') / 'pdf'}  lib:pdf",
        f"listed again: {world.lane('omp') / 'docx'}  lib:docx",
        f"listed again: {world.lane('omp') / 'pdf'}  lib:pdf",
        f"removed what a killed process left: {world.layout.staging / '1-x'}",
        f"left alone: {world.lane('omp') / 'mine'}: it is no projection of Retrieval's",
    ]
    assert projected("repair", "--json").json == {
        "adopted": [],
        "forgotten": [],
        "swept": [],
        "untouched": [{"what": str(world.lane("omp") / "mine"), "why": "it is no projection of Retrieval's"}],
    }
