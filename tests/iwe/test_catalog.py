"""The catalog in the hands of the real `iwe`: it finds, retrieves and validates, and sees no edge that is not ours."""

from __future__ import annotations

import random

import pytest

from pipeline.steps import card
from tests.steps.hostile import HOSTILE, descriptor, hostile_skill, record


def key(path):
    return path.removesuffix(".md")


def targets(edges):
    return sorted(edge["key"] for edge in edges)


def expected_parents(made):
    return sorted([f"categories/{name}" for name in made.categories] + [f"sources/{made.source}"])


def expected_children(catalog, path):
    folder, _, name = path.removesuffix(".md").rpartition("/")
    if name == "index":
        return ["categories", "sources"]
    if not folder:
        return sorted(key(other) for other in catalog.hubs if other.startswith(f"{name}/"))
    return sorted(
        key(card.card_path(made.id))
        for made, _described in catalog.skills
        if (made.source == name if folder == "sources" else name in made.categories)
    )


def noise(count):
    """Texts thrown together from the signs that Markdown, YAML and wikis react to, the same ones each time."""
    chance = random.Random(7)
    signs = [
        *"[]()<>`*_#-+=|~!\\&;:/.1) \n\t\r@$^{}\"'%,",
        "[[",
        "]]",
        "](../index.md)",
        "---\n",
        "```\n",
        "https://",
        "<a>",
        "ab",
    ]
    return ["".join(chance.choices(signs, k=chance.randint(1, 40))) for _ in range(count)]


@pytest.fixture(scope="session")
def hostile(library):
    return library([hostile_skill(text, number) for number, text in enumerate([*HOSTILE, *noise(400)])])


def assert_only_our_edges(catalog):
    documents = catalog.documents()
    assert set(documents) == {key(path) for path in catalog.pages | catalog.hubs}
    for made, _described in catalog.skills:
        found = documents[key(card.card_path(made.id))]
        assert found["title"] == card.title_of(made)
        assert found["references"] == []
        assert found["includes"] == []
        assert found["referencedBy"] == []
        assert targets(found["includedBy"]) == expected_parents(made)
    for path in catalog.hubs:
        assert documents[key(path)]["references"] == []
        assert targets(documents[key(path)]["includes"]) == expected_children(catalog, path)


def test_hostile_text_adds_no_edge_to_the_graph(hostile):
    assert_only_our_edges(hostile)


def test_hostile_text_leaves_every_page_in_its_shape(hostile):
    done = hostile.run("schema", "validate")
    assert (done.returncode, done.stdout) == (0, "")


def test_hostile_text_stays_findable_by_its_frontmatter(hostile):
    assert len(hostile.json("find", "--filter", "state: cold", "--limit", "0")) == len(hostile.skills)


@pytest.mark.requirement("R025")
def test_real_skills_make_a_graph_of_our_edges_alone(real):
    assert_only_our_edges(real)


def test_real_skills_pass_the_schemas(real):
    done = real.run("schema", "validate")
    assert (done.returncode, done.stdout) == (0, "")


def test_a_card_that_was_edited_by_hand_fails_the_schema(library):
    catalog = library([(record(), descriptor())])
    page = catalog.root / card.card_path(record().id)
    page.write_text(page.read_text(encoding="utf-8") + "\n## Added\n\ntext\n", encoding="utf-8")
    done = catalog.run("schema", "validate")
    assert done.returncode == 1
    assert "Added" in done.stdout


def test_state_and_kind_filter_what_is_found(real):
    archived = real.json("find", "--filter", "state: archived", "--limit", "0")
    assert len(archived) == len(real.skills) // 2
    assert {item["kind"] for item in archived} == {"skill"}
    hubs = real.json("find", "--filter", "kind: hub", "--limit", "0")
    assert {item["key"] for item in hubs} == {key(path) for path in real.hubs}
    documents = real.json("find", "--included-by", "categories/documents", "--limit", "0")
    assert len(documents) == len(real.skills) // 3


def test_a_card_is_found_by_a_word_of_its_text(library):
    skills = [
        (record(id=f"library:{n}", name=n), descriptor(purpose=f"Handles {n}.", head="")) for n in ("zebras", "maps")
    ]
    found = library(skills).json("find", "--lexical", "zebra", "--filter", "kind: skill", "--limit", "5")
    assert [item["key"] for item in found] == [key(card.card_path("library:zebras"))]


def test_a_card_is_retrieved_with_its_hubs(library):
    catalog = library([(record(), descriptor())])
    wanted = key(card.card_path(record().id))
    found = catalog.json(
        "retrieve", "-k", wanted, "--expand-included-by", "1", "--expand-references", "1", "--max-documents", "8"
    )
    assert {item["key"] for item in found} == {wanted, "sources/library", "categories/documents"}
    card_itself = next(item for item in found if item["key"] == wanted)
    assert "Fills in PDF forms." in card_itself["content"]
    assert targets(card_itself["includedBy"]) == ["categories/documents", "sources/library"]


def test_reading_the_catalog_changes_none_of_its_files(library):
    catalog = library([(record(), descriptor())])
    before = {path: path.read_bytes() for path in catalog.root.rglob("*") if path.is_file()}
    catalog.json("find", "--lexical", "forms", "--limit", "5")
    catalog.run("schema", "validate")
    assert {path: path.read_bytes() for path in catalog.root.rglob("*") if path.is_file()} == before


def test_ignore_rules_of_an_enclosing_folder_hide_no_card(library):
    catalog = library([(record(), descriptor())])
    (catalog.root.parent / ".gitignore").write_text("*.md\nskills/\nsources/\n", encoding="utf-8")
    try:
        assert len(catalog.documents()) == len(catalog.pages | catalog.hubs)
    finally:
        (catalog.root.parent / ".gitignore").unlink()
