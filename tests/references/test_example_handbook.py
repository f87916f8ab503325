"""The bundled handbook works as its README says."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.references.support import DocsWorld
from tests.support import ROOT

HANDBOOK = ROOT / "examples" / "references"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> DocsWorld:
    made = DocsWorld(tmp_path_factory.mktemp("world"), skills=())
    made.docs = []
    made.configure()
    text = (HANDBOOK / "README.md").read_text(encoding="utf-8")
    (block,) = tomllib.loads(text.partition("```toml\n")[2].partition("```")[0])["sources"]
    path = json.dumps(str(ROOT / block["path"]))
    lines = f'\n[[sources]]\nname = "{block["name"]}"\nkind = "{block["kind"]}"\npath = {path}\n'
    made.config.write_text(made.config.read_text(encoding="utf-8") + lines, encoding="utf-8")
    made.build()
    return made


@pytest.mark.parametrize(
    ("question", "section"),
    [
        ("when do we turn the compost", "garden:guides/compost.md#turning"),
        ("the drippers are clogged", "garden:guides/watering.md#when-it-does-not-drip"),
        ("how big is a plot", "garden:rules.md#plots"),
        ("may I throw in meat", "garden:guides/compost.md#what-stays-out"),
        ("frost and barrels in October", "garden:guides/watering.md#rain-barrels"),
    ],
)
def test_a_question_finds_its_section(world: DocsWorld, question: str, section: str) -> None:
    hits = world.references().answer(question, limit=2)["results"]

    assert section in [hit["section"]["id"] for hit in hits]
    assert all(hit["provenance"]["freshness"] == "fresh" for hit in hits)


def test_links_between_the_documents_lead_somewhere() -> None:
    for path in HANDBOOK.rglob("*.md"):
        for target in path.read_text(encoding="utf-8").split("](")[1:]:
            assert (path.parent / target.partition(")")[0]).is_file(), (path, target)


def test_no_section_of_the_handbook_is_without_text(world: DocsWorld) -> None:
    documents = {row["path"]: row["sections"] for row in world.lines("references-documents.jsonl")}

    assert set(documents) == {path.relative_to(HANDBOOK).as_posix() for path in HANDBOOK.rglob("*.md")}
    assert all(documents.values())
    assert Path(HANDBOOK / "README.md").is_file()
