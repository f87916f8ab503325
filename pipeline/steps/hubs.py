"""The catalog's pages above the cards, and what makes the folder an IWE library: configuration and schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipeline.model import Link
from pipeline.steps.card import card_path, inline, line, title_of, yaml
from serve.cards import exact_slug
from serve.contract import Record


class _Link(NamedTuple):
    title: str
    target: str


def hubs(records: Iterable[Record | Link], labels: Mapping[str, str] | None = None) -> dict[str, str]:
    """The hub pages by their path below the catalog.

    index.md leads to sources.md and categories.md, these to a page for each source and category, and these to the cards, by
    links that stand alone in their paragraphs: IWE's inclusion links. labels: what a category is called, by its ID.
    """
    by_source: dict[str, list[_Link]] = {}
    by_category: dict[str, list[_Link]] = {}
    for record in sorted(records, key=lambda record: (title_of(record).casefold(), record.id)):
        link = _Link(title_of(record), f"../{card_path(record.id)}")
        by_source.setdefault(record.source, []).append(link)
        for category in record.categories:
            by_category.setdefault(category, []).append(link)
    names = labels or {}
    sources = {name: (name, links) for name, links in by_source.items()}
    categories = {name: (names.get(name, name), links) for name, links in by_category.items()}
    return {
        "index.md": _page("Skills", [_Link("Sources", "sources.md"), _Link("Categories", "categories.md")]),
        **_family("sources", "Sources", sources),
        **_family("categories", "Categories", categories),
    }


def library() -> dict[str, str]:
    """The files that make the catalog an IWE library, by their path below it."""
    return {
        ".iwe/config.toml": _CONFIG,
        ".iwe/schemas/card.yaml": _CARD_SCHEMA,
        ".iwe/schemas/hub.yaml": _HUB_SCHEMA,
        ".ignore": _IGNORE,
    }


def _family(folder: str, title: str, members: Mapping[str, tuple[str, list[_Link]]]) -> dict[str, str]:
    """One hub and a page for each of its members: name to label and links."""
    paths = {name: f"{folder}/{exact_slug(name)}.md" for name in sorted(members)}
    pages = {f"{folder}.md": _page(title, [_Link(members[name][0], path) for name, path in paths.items()])}
    return pages | {path: _page(members[name][0], members[name][1]) for name, path in paths.items()}


def _page(title: str, links: Iterable[_Link]) -> str:
    shown = line(title) or "unnamed"
    parts = [f"---\ntitle: {yaml(title)}\nkind: {yaml('hub')}\n---", f"# {shown}"]
    parts += [f"[{inline(link.title)}]({link.target})" for link in links]
    return "\n\n".join(parts) + "\n"


# Version 4 is the newest that IWE 0.29 knows: it rewrites files of older ones. `library` is read by all versions.
_CONFIG = """\
# Written by `retrieval build`. Changes are overwritten.
version = 4

[library]
frontmatter_document_title = "title"

[markdown]
refs_extension = ".md"

[search]
language = "english"

[schemas.card]
match = "skills/**"

[schemas.hub]
match = ["index", "sources", "categories", "sources/*", "categories/*"]
"""

# IWE obeys the ignore rules of enclosing folders; these, which stand closer, win.
_IGNORE = """\
!*.md
!*/
"""

_CARD_SCHEMA = """\
description: cards are written by `retrieval build`, run it again instead of editing them
frontmatter:
  type: object
  required: [title, kind, id, source, state, harness, native_in, hidden_in, categories, tags, path]
  additionalProperties: false
  properties:
    title: { type: string, minLength: 1 }
    kind: { const: skill }
    id: { type: string, minLength: 1 }
    source: { type: string, minLength: 1 }
    state: { enum: [native, hidden, cold, archived] }
    harness: { type: string }
    native_in: { type: array, items: { type: string } }
    hidden_in: { type: array, items: { type: string } }
    categories: { type: array, items: { type: string } }
    tags: { type: array, items: { type: string } }
    path: { type: string }
maxDepth: 2
additionalBlocks: false
additionalSections: false
sections:
  - maxContains: 1
    blocks:
      - { type: paragraph, minContains: 0, maxContains: 1 }
    additionalBlocks: false
    additionalSections: false
    sections:
      - header: { const: Use when }
        minContains: 0
        maxContains: 1
        blocks: [{ type: bullet-list, maxContains: 1 }]
        additionalBlocks: false
        additionalSections: false
      - header: { const: Not for }
        minContains: 0
        maxContains: 1
        blocks: [{ type: bullet-list, maxContains: 1 }]
        additionalBlocks: false
        additionalSections: false
      - header: { const: Topics }
        minContains: 0
        maxContains: 1
        blocks: [{ type: bullet-list, maxContains: 1 }]
        additionalBlocks: false
        additionalSections: false
      - header: { const: Begins with }
        minContains: 0
        maxContains: 1
        blocks: [{ type: paragraph, maxContains: 1 }]
        additionalBlocks: false
        additionalSections: false
"""

_HUB_SCHEMA = """\
description: hubs are written by `retrieval build`, run it again instead of editing them
frontmatter:
  type: object
  required: [title, kind]
  additionalProperties: false
  properties:
    title: { type: string }
    kind: { const: hub }
maxDepth: 1
additionalBlocks: false
additionalSections: false
sections:
  - maxContains: 1
    blocks:
      - { type: paragraph, minContains: 0 }
    additionalBlocks: false
    additionalSections: false
"""
