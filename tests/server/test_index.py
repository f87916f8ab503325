"""The real tools over a real index: what comes back, and what is said when there is none to answer from."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from serve import tools
from serve.contract import CONTRACT_VERSION
from tests.server.client import SERVE, RawClient, text_of, until
from tests.world import World

pytestmark = pytest.mark.long

QUERY = "audit the security of pods in a kubernetes cluster"
RANK = {"RETRIEVAL_SELECTOR": "rank"}

# The server with a model that is held back until a file appears.
HELD_BACK = """
import os, sys
from pathlib import Path
from serve.embedder import builtin
held, gate = builtin.BuiltinEmbedder._load, Path(sys.argv.pop(1))

def load(self, *, threads):
    gate.with_suffix(".asked").touch()
    while not gate.exists():
        PAUSE.wait(0.01)
    return held(self, threads=threads)

import threading
PAUSE = threading.Event()
builtin.BuiltinEmbedder._load = load
from serve import __main__ as program
code = program.main(sys.argv[1:])
os._exit(code)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The four skills of the little library, and a document of reference."""
    world = World(tmp_path_factory.mktemp("built"))
    world.library()
    manual = world.root / "manual"
    manual.mkdir()
    (manual / "pods.md").write_text(
        "# Pods\n\nPods share a network.\n\n## Limits\n\nSet limits for each pod.\n", encoding="utf-8"
    )
    path = json.dumps(str(manual))
    world.extra["main"] = f'\n[[sources]]\nname = "manual"\nkind = "references"\npath = {path}\n'
    world.configure()
    world.build()
    return world


def serving(world: World, *options: str, command: list[str] | None = None, **variables: str) -> RawClient:
    return RawClient([*(command or SERVE), *options], {**world.environment(), **RANK, **variables}, cwd=world.root)


def semantic(result: dict[str, Any]) -> dict[str, Any]:
    return result["structuredContent"]["lanes"]["semantic"]


def ask_until_loaded(raw: RawClient, query: str = QUERY) -> dict[str, Any]:
    """The first answer in which the semantic lane takes part."""
    for _ in range(1000):
        result = raw.call(query=query)
        if result.get("isError") or semantic(result)["used"]:
            return result
        assert semantic(result)["reason"] == "the model is still being loaded; ask again in a moment"
    raise AssertionError("the model was never loaded")


def test_an_exact_id_gives_the_file_as_it_is(built: World) -> None:
    file = built.lib("main") / "pod-audit" / "SKILL.md"
    with serving(built) as raw:
        raw.initialize()
        result = raw.call(query="main:pod-audit")

    answer = result["structuredContent"]
    jsonschema.validate(answer, tools.SKILL_OUTPUT)
    assert (answer["found"], answer["id"], answer["selection"]["selector"]) == (True, "main:pod-audit", "exact")
    assert answer["text"] == file.read_text(encoding="utf-8")
    assert answer["text"] in text_of(result)
    assert (answer["base_directory"], answer["files"]) == (str(file.parent), ["notes.md"])


@pytest.mark.requirement("R104")
def test_a_query_finds_and_projects_one_skill(built: World) -> None:
    with serving(built, "--harness", "omp") as raw:
        raw.initialize()
        answer = ask_until_loaded(raw)["structuredContent"]

        jsonschema.validate(answer, tools.SKILL_OUTPUT)
        assert (answer["id"], answer["selection"]["selector"]) == ("main:pod-audit", "rank")
        copy = Path(answer["projection"]["path"])
        assert copy.is_relative_to(built.data / "projections" / "omp" / "skills")
        assert (copy / "notes.md").read_text(encoding="utf-8") == "notes of pod-audit\n"
        assert answer["reload"] == "/reload-plugins"
        again = raw.call(query=QUERY)["structuredContent"]
        assert again["projection"]["path"] == answer["projection"]["path"]
        assert raw.end() == 0


@pytest.mark.requirement("R105")
def test_sections_of_references_come_with_their_provenance(built: World) -> None:
    with serving(built) as raw:
        raw.initialize()
        result = raw.call(tools.REFERENCE, query="limits of pods", limit=1, max_chars=200)

    answer = result["structuredContent"]
    jsonschema.validate(answer, tools.REFERENCE_OUTPUT)
    (hit,) = answer["results"]
    assert hit["retrieved"]["data"].startswith("## Limits")
    assert hit["citation"]["reference"] == f"{built.root / 'manual' / 'pods.md'}:5-7"
    assert hit["citation"]["reference"] in text_of(result)
    assert hit["retrieved"]["data"] in text_of(result)


def test_without_references_the_answer_says_how_to_get_some(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.library()
    world.build()
    with serving(world) as raw:
        raw.initialize()
        result = raw.call(tools.REFERENCE, query="limits of pods")

    jsonschema.validate(result["structuredContent"], tools.REFERENCE_OUTPUT)
    lines = text_of(result).splitlines()
    assert lines[0] == "No section of the references was found."
    assert "Note: no references are indexed" in lines
    assert [line for line in lines if line.startswith("Next: add a [[sources]] block")] != []


@pytest.mark.requirement("R106")
def test_nothing_that_administers_is_reachable(built: World) -> None:
    with serving(built) as raw:
        raw.initialize()
        names = [tool["name"] for tool in raw.ask("tools/list")["tools"]]
        refused = [
            raw.answer(raw.send("tools/call", {"name": name, "arguments": {}}))["error"]["code"]
            for name in ("list", "categorize", "register", "sync", "build", "clean")
        ]

    assert names == [tools.SKILL, tools.REFERENCE]
    assert refused == [-32602] * 6


# ------------------------------------------------------------------------------------------------------- until it is loaded


def test_until_the_model_is_loaded_the_other_lanes_answer_and_say_so(built: World, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(built, command=[sys.executable, "-c", HELD_BACK, str(gate)]) as raw:
        raw.initialize()
        raw.ask("tools/list")
        until(gate.with_suffix(".asked"))  # loading began by itself
        early = raw.call(query=QUERY)

        jsonschema.validate(early["structuredContent"], tools.SKILL_OUTPUT)
        assert semantic(early) == {"used": False, "reason": "the model is still being loaded; ask again in a moment"}
        assert early["structuredContent"]["lanes"]["lexical"]["used"]
        assert early["structuredContent"]["candidates"][0]["id"] == "main:pod-audit"
        assert "Without the semantic lane: the model is still being loaded" in text_of(early)
        gate.touch()
        assert ask_until_loaded(raw)["structuredContent"]["id"] == "main:pod-audit"
        assert raw.end() == 0


def test_a_client_that_asks_for_no_list_finds_the_model_loaded_all_the_same(built: World, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with serving(built, command=[sys.executable, "-c", HELD_BACK, str(gate)]) as raw:
        raw.initialize()
        until(gate.with_suffix(".asked"))
        assert raw.end() == 0  # and loading holds nobody up


def test_many_calls_as_the_very_first_thing_are_all_answered(built: World) -> None:
    """Index, model and tools are opened by whoever comes first, and by nobody twice."""
    with serving(built, "--harness", "codex") as raw:
        raw.initialize()
        numbers = [
            raw.begin_call(text) for text in (QUERY, "main:pod-audit", "tune a slow sql query") for _ in range(10)
        ]
        results = [raw.answer(number)["result"] for number in numbers]

        assert [text_of(result) for result in results if result.get("isError")] == []
        exact = [result["structuredContent"] for result in results[10:20]]
        assert {(answer["id"], answer["projection"]["state"] in {"copied", "current"}) for answer in exact} == {
            ("main:pod-audit", True)
        }
        assert raw.end() == 0


# -------------------------------------------------------------------------------------------------- nothing to answer from


def failing(raw: RawClient) -> list[str]:
    """What both tools say."""
    results = [raw.call(tools.SKILL, query=QUERY), raw.call(tools.REFERENCE, query=QUERY)]
    assert all(result["isError"] and "structuredContent" not in result for result in results)
    return [text_of(result) for result in results]


def test_without_an_index_the_tools_say_how_to_get_one_and_go_on_when_it_is_there(tmp_path: Path) -> None:
    world = World(tmp_path)
    with serving(world) as raw:
        raw.initialize()
        expected = f"error: there is no index yet\n  at {world.data / 'snapshots'}\n  next: run `retrieval build`"
        assert failing(raw) == [expected, expected]

        world.library()
        world.build()
        assert ask_until_loaded(raw)["structuredContent"]["id"] == "main:pod-audit"
        assert raw.end() == 0


def test_an_index_of_another_contract_is_refused_with_the_next_step(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.library()
    world.build()
    manifest = world.data / "snapshots" / world.generation / "manifest.json"
    written = json.loads(manifest.read_bytes())
    manifest.write_text(json.dumps({**written, "contract": CONTRACT_VERSION + 1, "unheard": 1}), encoding="utf-8")
    with serving(world) as raw:
        raw.initialize()
        skill, reference = failing(raw)

    assert skill == reference
    assert skill.startswith(
        f"error: the index follows contract {CONTRACT_VERSION + 1}, this program reads contract {CONTRACT_VERSION}\n"
    )
    assert "\n  next: run `retrieval build` with the version of Retrieval that answers" in skill


def test_another_embedder_than_the_one_that_made_the_index_is_refused_with_the_next_step(built: World) -> None:
    with serving(built, RETRIEVAL_EMBEDDING_QUERY_PREFIX="query: ") as raw:
        raw.initialize()
        skill, reference = failing(raw)

    assert skill == reference
    assert skill == (
        "error: the configured embedder is not the one that made the index: query_prefix 'query: ' instead of ''\n"
        "  next: run `retrieval build`, or configure the embedder that made the index"
    )


def test_an_index_that_cannot_be_read_is_an_answer_and_not_the_end(tmp_path: Path) -> None:
    (tmp_path / "data" / "snapshots").mkdir(parents=True)
    (tmp_path / "data" / "snapshots" / "current.json").write_text("{", encoding="utf-8")
    with RawClient(SERVE, {"RETRIEVAL_HOME": str(tmp_path / "data")}) as raw:
        raw.initialize()
        assert all(text.startswith("error: the published index cannot be read") for text in failing(raw))
        assert raw.end() == 0


# ---------------------------------------------------------------------------------------------------------- a new snapshot


def test_a_new_generation_is_answered_from_without_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.library()
    world.build()
    with serving(world) as raw:
        raw.initialize()
        first = raw.call(query="main:pod-audit")["structuredContent"]
        world.skill("pod-audit", "Audit pods anew. Use when checking a cluster's pods.")
        world.skill("brand-new", "Paint SQL databases green. Use when a database looks dull.")
        world.build()
        second = raw.call(query="main:pod-audit")["structuredContent"]
        third = raw.call(query="main:brand-new")["structuredContent"]

    assert first["index"]["generation"] != second["index"]["generation"] == world.generation
    assert (first["index"]["skills"], second["index"]["skills"]) == (4, 5)
    assert "Audit pods anew" in second["text"]
    assert third["found"]


def test_a_new_skill_needs_no_restart_of_the_server(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.library()
    world.build()
    with serving(world) as raw:
        raw.initialize()
        ask_until_loaded(raw)
        world.skill(
            "sonnet-writing", "Write a sonnet about SQL databases. Use when asked for a sonnet in iambic verse."
        )
        world.build()
        answer = raw.call(query="write a sonnet in iambic verse about a database")["structuredContent"]
        seen = [answer["id"], *(item["id"] for item in answer["candidates"])]

    assert "main:sonnet-writing" in seen


def test_calls_at_once_are_answered_whole_while_new_generations_come(tmp_path: Path) -> None:
    """Each answer is of one generation, and none is an error."""
    world = World(tmp_path)
    world.library()
    world.build()
    generations = {world.generation}
    with serving(world) as raw:
        raw.initialize()
        ask_until_loaded(raw)
        numbers: list[int] = []
        for edition in range(4):
            numbers += [
                raw.begin_call(text) for text in (QUERY, "main:pod-audit", "tune a slow sql query") for _ in range(8)
            ]
            world.skill("extra", f"Count SQL rows, edition {edition}. Use when rows are to be counted.")
            world.build()
            generations.add(world.generation)
        results = [raw.answer(number)["result"] for number in numbers]

    assert [text_of(result) for result in results if result.get("isError")] == []
    assert len(generations) == 5
    assert {result["structuredContent"]["index"]["generation"] for result in results} <= generations


def test_an_edit_since_the_build_is_said_and_the_file_as_it_is_now_is_returned(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.library()
    world.build()
    path = world.skill("pod-audit", "Something else entirely.")
    with serving(world) as raw:
        raw.initialize()
        result = raw.call(query="main:pod-audit")

    assert result["structuredContent"]["text"] == path.read_text(encoding="utf-8")
    assert "Note: the file was changed after the index was built" in text_of(result)


def test_the_names_that_a_harness_shows_itself_are_left_out_for_it_alone(tmp_path: Path) -> None:
    world = World(tmp_path, "main", "mine")
    world.library()
    world.skill("pod-audit", source="mine")
    world.extra["mine"] = 'harness = "omp"'
    world.configure()
    text = world.config.read_text(encoding="utf-8")
    head, _, tail = text.rpartition('state = "cold"')
    world.config.write_text(f'{head}state = "native"{tail}', encoding="utf-8")
    world.build()

    def asked(harness: str) -> dict[str, Any]:
        with serving(world, "--harness", harness) as raw:
            raw.initialize()
            return ask_until_loaded(raw)["structuredContent"]

    assert asked("codex")["id"] == "main:pod-audit"
    omp = asked("omp")
    assert "main:pod-audit" not in [omp["id"], *(item["id"] for item in omp["candidates"])]
