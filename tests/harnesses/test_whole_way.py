"""The whole way with the real programs: an agent's call, the scout's choice, the copy, and the harness that lists it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serve.projection.layout import Layout
from tests.harnesses.conftest import COMMAND
from tests.programs import environment_for
from tests.projection.conftest import Hermes, Omp
from tests.selection.model_server import ModelServer
from tests.server.client import RawClient
from tests.world import World

SKILL = "main:pod-audit"
TASK = "look through our cluster for pods that may do too much"


def scout(turn: int, _request: dict[str, Any]) -> object:
    """A model that searches, reads what it was offered, and takes it."""
    if turn == 0:
        return [("catalog_search", {"query": "kubernetes pod security"})]
    if turn == 1:
        return [("catalog_read", {"id": SKILL})]
    return json.dumps({"choice": SKILL, "reason": "it audits pods"})


def retrieve(world: World, omp: Path, harness: str, model: ModelServer) -> dict[str, Any]:
    """What an agent in a harness gets from `retrieve_skill` with real OMP as scout."""
    variables = environment_for(
        omp,
        RETRIEVAL_HOME=str(world.data),
        RETRIEVAL_SELECTOR="omp",
        RETRIEVAL_OMP_COMMAND=str(omp),
        RETRIEVAL_SCOUT_URL=model.url,
        RETRIEVAL_SCOUT_MODEL="scout",
        RETRIEVAL_SCOUT_STANDBY="false",
    )
    with RawClient([COMMAND, "-m", "serve", "--harness", harness], variables) as client:
        client.initialize()
        result = client.call(query=TASK)
        assert client.end() == 0
    assert not result.get("isError"), result
    return dict(result["structuredContent"])


def check(answer: dict[str, Any], world: World, index: World, harness: str) -> Path:
    """The answer holds the skill verbatim, chosen by the scout; its package lies in the lane of the harness alone."""
    source = index.lib("main") / "pod-audit"
    assert answer["id"] == SKILL
    assert answer["text"].encode() == (source / "SKILL.md").read_bytes()
    assert answer["selection"]["selector"] == "omp"
    assert answer["selection"]["reason"] == "it audits pods"
    assert answer["selection"]["tool_calls"] == 2
    copy = Path(answer["projection"]["path"])
    lane = Layout(world.data).lane(harness)
    assert copy.parent == lane
    assert (copy / "notes.md").read_bytes() == (source / "notes.md").read_bytes()
    copies = [path for path in (world.data / "projections").rglob("SKILL.md") if lane not in path.parents]
    assert copies == []
    return copy


@pytest.mark.long
@pytest.mark.requirement("R004", "R006", "R009", "R027", "R031")
def test_what_the_scout_chose_is_in_the_answer_and_omp_lists_it_after_a_reload(
    omp: Path, index: World, world: World, home: Path
) -> None:
    program = Omp(omp, home, Layout(world.data).lane("omp"))
    model = ModelServer(scout)
    try:
        assert "pod-audit" not in program.reload()
        copy = check(retrieve(world, omp, "omp", model), world, index, "omp")
        assert copy.name in program.reload()
    finally:
        model.close()
        assert program.close() == 0


@pytest.mark.long
@pytest.mark.requirement("R004", "R006", "R008", "R027")
def test_what_the_scout_chose_is_in_the_answer_and_hermes_lists_it_after_a_reload(
    omp: Path, hermes: Path, index: World, world: World, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(home / "hermes"))
    program = Hermes(hermes, home / "hermes", Layout(world.data).lane("hermes"))
    model = ModelServer(scout)
    try:
        assert program.reload()["total"] == 0
        copy = check(retrieve(world, omp, "hermes", model), world, index, "hermes")
        assert [item["name"] for item in program.reload()["added"]] == [copy.name]
        (view,) = program.view("pod-audit")
        assert view["success"]
        assert Path(view["skill_dir"]).resolve() == copy.resolve()
    finally:
        model.close()
        assert program.close() == 0
