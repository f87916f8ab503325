"""Cards and hubs: what they show, where they lie, and that no text in them acts as markup."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipeline.steps import card, hubs
from tests.steps.hostile import DESCRIPTOR, HOSTILE, RECORD, descriptor, hostile_skill, record

MARKDOWN = MarkdownIt("commonmark", {"linkify": False}).enable("table")
EXPECTED = """\
---
title: "pdf"
kind: "skill"
id: "library:tools/pdf"
source: "library"
state: "cold"
harness: ""
native_in: []
hidden_in: []
categories: ["documents"]
tags: ["pdf", "forms"]
path: "/library/tools/pdf/SKILL.md"
---

# pdf

Fills in PDF forms.

## Use when

- a form has to be filled in
- a table must leave a PDF

## Not for

- scanned pages

## Topics

- Filling in
- Reading tables

## Begins with

Open the file, list its fields, write the values.
"""
# Texts in which markup is likely.
texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=60),
    st.text(st.sampled_from("[]()<>`*_#-+=|~!\\&;:/.1) \n\tw@$^{}ab"), max_size=40),
)


def body(page):
    return page.split("\n---\n", 1)[1]


def shown(tokens):
    """The texts of a parsed page's lines, and the kinds of everything in it."""
    lines, kinds = [], set()
    for token in tokens:
        if token.type == "inline":
            kinds |= {child.type for child in token.children}
            lines.append("".join(child.content for child in token.children))
        else:
            kinds.add(token.type)
    return lines, kinds


def test_a_card_shows_what_the_skill_says_under_frontmatter_that_can_be_filtered():
    assert card.make(RECORD, DESCRIPTOR) == EXPECTED


def test_what_a_skill_does_not_say_has_no_section():
    empty = descriptor(purpose="", triggers=(), limits=(), headings=(), head="")
    assert body(card.make(RECORD, empty)) == "\n# pdf\n"


def test_what_no_card_shows_leaves_the_card_alone():
    hidden = record(digest="ff", package_digest="ff", files=9, bytes=9, duplicates=("a:b",), aliases=("/c",))
    assert card.make(hidden, descriptor(short="other")) == EXPECTED


@given(texts)
@pytest.mark.requirement("R025")
def test_whatever_a_skill_says_is_shown_as_text_and_adds_no_markup(text):
    page = card.make(*hostile_skill(text, 1))
    lines, kinds = shown(MARKDOWN.parse(body(page)))
    title = card.title_of(hostile_skill(text, 1)[0])
    folded = card.plain(text)[: card.MAX_ITEM].rstrip()
    said = [folded] if folded else []
    purpose = [card.plain(text)[: card.MAX_PURPOSE].rstrip()] if folded else []
    head = [card.plain(text)[: card.MAX_HEAD].rstrip()]
    assert lines == [
        title,
        *purpose,
        "Use when",
        *said,
        "plain",
        *(["Not for", *said, "Topics", *said, *said, "Begins with", *head] if folded else []),
    ]
    assert kinds <= {
        *("heading_open", "heading_close", "paragraph_open", "paragraph_close"),
        *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
        *("text", "text_special"),
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_has_no_wiki_link_and_no_bare_address(text):
    page = body(card.make(*hostile_skill(text, 1)))
    assert "[[" not in page
    assert not re.search(r"(?<!\\)://", page)
    assert not re.search(r"\bwww\.", page, re.IGNORECASE)
    assert not re.search(r"[^\\]@", page)


@given(texts)
def test_frontmatter_is_yaml_that_gives_back_the_plain_texts(text):
    made, described = hostile_skill(text, 1)
    page = card.make(made, described)
    fields = yaml.safe_load(page.split("---\n")[1])
    assert fields["title"] == card.title_of(made)
    assert fields["tags"] == [card.plain(text)[: card.MAX_TITLE], "plain"]
    assert fields["path"] == card.plain(made.path)
    assert fields["state"] == "cold"
    assert list(fields) == list(yaml.safe_load(EXPECTED.split("---\n")[1]))


@given(st.text(st.characters(codec=None), max_size=80))
def test_no_invisible_character_reaches_a_page(text):
    page = card.make(*hostile_skill(text, 1))
    page.encode("utf-8")
    assert all(sign == "\n" or (ord(sign) > 31 and not 127 <= ord(sign) < 160) for sign in page)
    assert not set(page) & set("\u200b\u200e\u200f\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\u2028\u2029")


def test_long_texts_are_cut():
    made, described = hostile_skill("x" * 100_000, 1)
    page = card.make(record(name=made.name, tags=made.tags * 1_000), described)
    assert len(page) < 60_000


def test_a_skill_whose_name_is_invisible_is_shown_by_its_folder():
    assert card.title_of(record(name="\u200b\u202e")) == "pdf"
    assert card.title_of(record(name=" ", id="library:")) == "library:"


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_path_is_safe_on_every_system(source, folder):
    path = card.card_path(f"{source}:{folder}")
    assert re.fullmatch(r"skills/[a-z0-9-]{1,60}/[a-z0-9-]{1,60}-[0-9a-f]{16}\.md", path)
    assert ".." not in PurePosixPath(path).parts


def test_a_path_depends_on_the_id_alone_and_tells_ids_apart():
    assert card.card_path("library:tools/pdf") == "skills/library/pdf-e064d19de8ce3b83.md"
    same_slug = {card.card_path(f"my{sign}skills:pdf") for sign in " -_.!"}
    assert len(same_slug) == 5
    assert len({card.card_path(f"library:{number}/pdf") for number in range(3_000)}) == 3_000


@pytest.mark.requirement("R025", "R038")
def test_hubs_lead_from_the_index_over_sources_and_categories_to_every_card():
    records = [RECORD, record(id="other:web", name="web", source="other", categories=("web", "documents"))]
    pages = hubs.hubs(records, {"documents": "Documents and forms"})
    pdf, web = "../" + card.card_path(RECORD.id), "../" + card.card_path("other:web")
    assert body(pages["index.md"]) == "\n# Skills\n\n[Sources](sources.md)\n\n[Categories](categories.md)\n"
    assert body(pages["sources.md"]) == "\n# Sources\n\n[library](sources/library.md)\n\n[other](sources/other.md)\n"
    assert body(pages["categories.md"]) == (
        "\n# Categories\n\n[Documents and forms](categories/documents.md)\n\n[web](categories/web.md)\n"
    )
    assert body(pages["sources/library.md"]) == f"\n# library\n\n[pdf]({pdf})\n"
    assert body(pages["categories/documents.md"]) == f"\n# Documents and forms\n\n[pdf]({pdf})\n\n[web]({web})\n"
    assert set(pages) == {
        *("index.md", "sources.md", "categories.md", "sources/library.md", "sources/other.md"),
        *("categories/documents.md", "categories/web.md"),
    }


def test_the_order_of_records_never_changes_a_hub():
    records = [record(id=f"library:{number}", name=f"name {number % 3}") for number in range(9)]
    assert hubs.hubs(records) == hubs.hubs(reversed(records))


def test_sources_whose_names_differ_in_punctuation_have_pages_of_their_own():
    records = [record(id=f"{name}:pdf", source=name) for name in ("my skills", "my-skills", "My-Skills", "技能")]
    pages = [path for path in hubs.hubs(records) if path.startswith("sources/")]
    assert len(pages) == 4
    assert "sources/my-skills.md" in pages


def test_an_empty_catalog_has_its_three_first_pages():
    assert set(hubs.hubs([])) == {"index.md", "sources.md", "categories.md"}


@given(texts)
def test_a_hub_links_to_cards_and_to_nothing_that_a_name_says(text):
    page = hubs.hubs([record(name=text, source="library")])["sources/library.md"]
    links = [
        child.attrs["href"]
        for token in MARKDOWN.parse(body(page))
        for child in token.children or []
        if child.type == "link_open"
    ]
    assert links == ["../" + card.card_path(RECORD.id)]
