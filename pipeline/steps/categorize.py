"""Gives a skill its categories: by hand, by its own declaration, or by keywords, and records the evidence.

Keywords in the name, the description and the tags count most, those in folder names and headings less, those in the
body least; one stray word in the body decides nothing. The source's own name is never looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.keywords import words
from pipeline.model import Categorized, Evidence, Found
from pipeline.steps import clauses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.taxonomy import Taxonomy

MOST_CATEGORIES = 4
MOST_DECLARED = 8

# What one keyword is worth, by the field it stands in.
_WEIGHTS = {"name": 4.0, "description": 3.0, "triggers": 2.5, "tags": 2.0, "folder": 1.5, "headings": 0.6, "head": 0.3}
_WEAK = 1.0  # fields below this are weak
_WEAK_CAP = 1.5  # what terms found only in weak fields may add to one category
_AGAIN = 0.25  # the share that counts when a term stands in further fields
_HINT = 1 / 3  # the share that counts for a hint
_COVERED = 0.5  # the share that counts when a longer term of another category spans the same words
_SURE = 2.0  # a score that makes a category
_LIKELY = 1.1  # a score that makes the best category one when none is sure
_RELATIVE = 0.5  # the share of the best score below which a category is a side remark ...
_CLEAR = 4.0  # ... unless its own score is clear

# How much of each field is read, in characters, which bounds the time for hostile text.
_READ = {"name": 200, "description": 2_000, "tags": 1_000, "folder": 400, "headings": 3_000, "head": 2_000}
_DECLARED_READ = 32
_MOST_EVIDENCE = 6  # rows kept per category
_BREAK = "\n"  # between folder names, so that no keyword reaches across; never a word, so never matched

_Hits = dict[int, dict[str, float]]  # worth by term index and field


def make(
    found: Found, head: str, headings: tuple[str, ...], override: tuple[str, ...] | None, taxonomy: Taxonomy
) -> Categorized:
    """The categories of one skill, the best first, at most 4 by keywords. None at all means: nothing was sure enough.

    head: start of the body. headings: the body's. override: what `Overrides.of` gives for this skill.
    """
    if override is not None:
        rows = tuple(Evidence(category=category, rule="override") for category in override)
        return Categorized(id=found.id, categories=override, evidence=rows)
    declared, diagnostics = _declared(found.categories, taxonomy)
    if declared:
        rows = tuple(Evidence(category=category, rule="declared") for category in declared)
        return Categorized(id=found.id, categories=declared, evidence=rows, diagnostics=diagnostics)
    hits = _hits(found, head, headings, taxonomy)
    categories = _decide(hits, taxonomy)
    evidence = tuple(row for category in categories for row in _evidence(category, hits, taxonomy))
    return Categorized(id=found.id, categories=categories, evidence=evidence, diagnostics=diagnostics)


def _declared(wanted: tuple[str, ...], taxonomy: Taxonomy) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The declared categories that exist, and a diagnostic for each that does not."""
    known: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for text in wanted[:_DECLARED_READ]:
        category = "-".join(words(text[:100]))
        if category in taxonomy.labels:
            known[category] = None
        else:
            shown = "".join(character for character in text[:64] if character.isprintable()).strip()
            unknown[f"unknown_category:{shown}"] = None
    return tuple(known)[:MOST_DECLARED], tuple(unknown)[:MOST_DECLARED]


def _hits(found: Found, head: str, headings: tuple[str, ...], taxonomy: Taxonomy) -> _Hits:
    """Where each term stands and what it is worth there."""
    terms = taxonomy.terms
    find = taxonomy.matcher.find
    hits: _Hits = {}
    for field, tokens in _fields(found, head, headings):
        weight = _WEIGHTS[field]
        for index, longer in find(tokens):
            term = terms[index]
            worth = weight * _HINT if term.hint else weight
            if longer:
                if any(terms[other].category == term.category for other in longer):
                    continue
                worth *= _COVERED
            fields = hits.setdefault(index, {})
            if worth > fields.get(field, 0.0):
                fields[field] = worth
    return hits


def _fields(found: Found, head: str, headings: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    name = words(found.name[: _READ["name"]])
    yield "name", name
    yield from _description(found.description[: _READ["description"]])
    yield "tags", _joined(found.tags, "tags")
    folders = found.folder[-_READ["folder"] :].split("/")
    if words(folders[-1]) == name:
        folders.pop()  # the skill's own folder says nothing new
    yield "folder", _joined(folders, "folder")
    yield "headings", _joined(headings, "headings")
    yield "head", words(head[: _READ["head"]])


def _description(text: str) -> Iterator[tuple[str, list[str]]]:
    """What the skill is for and when to use it; what it is not for says nothing about it."""
    said: dict[str, list[str]] = {clauses.PURPOSE: [], clauses.TRIGGER: [], clauses.LIMIT: []}
    for kind, clause in clauses.split(text):
        said[kind] += words(clause)
        said[kind].append(_BREAK)
    yield "description", said[clauses.PURPOSE]
    yield "triggers", said[clauses.TRIGGER]


def _joined(texts: tuple[str, ...] | list[str], field: str) -> list[str]:
    """The words of several texts, with breaks between them."""
    tokens: list[str] = []
    left = _READ[field]
    for text in texts:
        if left <= 0:
            break
        tokens += words(text[:left])
        tokens.append(_BREAK)
        left -= len(text) + 1
    return tokens


def _decide(hits: _Hits, taxonomy: Taxonomy) -> tuple[str, ...]:
    """The categories whose terms add up, the best first; equal scores go by ID."""
    scores: dict[str, float] = {}
    weak: dict[str, float] = {}
    for index, fields in hits.items():
        best = max(fields.values())
        worth = best + _AGAIN * (sum(fields.values()) - best)
        into = scores if any(_WEIGHTS[field] >= _WEAK for field in fields) else weak
        category = taxonomy.terms[index].category
        into[category] = into.get(category, 0.0) + worth
    for category, worth in weak.items():
        scores[category] = scores.get(category, 0.0) + min(worth, _WEAK_CAP)
    ranked = sorted(scores, key=lambda category: (-round(scores[category], 6), category))
    if not ranked:
        return ()
    top = scores[ranked[0]]
    least = max(_SURE, min(_RELATIVE * top, _CLEAR))
    sure = tuple(category for category in ranked if scores[category] >= least)
    if sure:
        return sure[:MOST_CATEGORIES]
    return (ranked[0],) if top >= _LIKELY else ()


def _evidence(category: str, hits: _Hits, taxonomy: Taxonomy) -> list[Evidence]:
    """The strongest places that spoke for `category`, one row for each term and field."""
    rows = [
        (-worth, taxonomy.terms[index].text, field)
        for index, fields in hits.items()
        if taxonomy.terms[index].category == category
        for field, worth in fields.items()
    ]
    return [
        Evidence(category=category, rule="keyword", keyword=text, field=field)
        for _, text, field in sorted(rows)[:_MOST_EVIDENCE]
    ]
