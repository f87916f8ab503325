"""Gives a skill its categories: by hand, by its own declaration, or by keywords, and records the evidence.

Keywords in the name and the description count most, those in tags and folder names less, those in headings and body
least: one stray word in the body decides nothing. The source's own name is never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.keywords import words
from pipeline.model import Categorized, Evidence, Found
from pipeline.steps import clauses
from pipeline.taxonomy import Taxonomy

MOST_CATEGORIES = 4  # by keywords
MOST_DECLARED = 8
MOST_EVIDENCE = 6  # rows for one category

# What a keyword is worth, by the field it stands in, and how many characters of the field are read: foreign text may be
# of any length. "triggers" are the description's "use when" clauses; its "not for" clauses are not read at all.
_WORTH = {
    "name": 4.0,
    "description": 3.0,
    "triggers": 2.5,
    "tags": 2.0,
    "folder": 1.5,
    "headings": 0.6,
    "head": 0.3,
}
_READ = {"name": 200, "description": 2_000, "tags": 1_000, "folder": 400, "headings": 3_000, "head": 2_000}
_WEAK = frozenset({"headings", "head"})
_WEAK_MOST = 1.5  # what all terms found in weak fields alone may add to a category
_HINT = 1 / 3  # the share of a hint
_COVERED = 0.5  # the share of a term inside a longer term of another category
_AGAIN = 0.25  # the share of a term's further fields

# What a category needs. A hint in the description and its echo in the body are not yet likely; a hint in the name is.
_SURE = 2.0
_LIKELY = 1.1  # for the best category when none is sure
_SHARE = 0.5  # of the best score: what is below is a side remark ...
_CLEAR = 4.0  # ... unless its own score is clear

_DECLARED_READ = 32  # values
_BREAK = "\n"  # between two texts of a field, so that no keyword reaches across: no word is a line break

_Hits = dict[int, dict[str, float]]  # worth by term and field


def make(
    found: Found, head: str, headings: Sequence[str], override: tuple[str, ...] | None, taxonomy: Taxonomy
) -> Categorized:
    """The categories of one skill, the best first. None at all means that nothing spoke clearly enough for any.

    head: start of the body. headings: the body's. override: what `Overrides.of` gives for this skill. An override wins
    over `found.categories`, which wins over keywords; of the declared ones those that the taxonomy lacks become
    diagnostics.
    """
    if override is not None:
        return _given(found, override, "override", ())
    declared, diagnostics = _declared(found.categories, taxonomy)
    if declared:
        return _given(found, declared, "declared", diagnostics)
    hits = _hits(found, head, headings, taxonomy)
    categories = _decide(hits, taxonomy)
    evidence = tuple(row for category in categories for row in _evidence(category, hits, taxonomy))
    return Categorized(id=found.id, categories=categories, evidence=evidence, diagnostics=diagnostics)


def _given(found: Found, categories: tuple[str, ...], rule: str, diagnostics: tuple[str, ...]) -> Categorized:
    evidence = tuple(Evidence(category=category, rule=rule) for category in categories)
    return Categorized(id=found.id, categories=categories, evidence=evidence, diagnostics=diagnostics)


def _declared(wanted: Sequence[str], taxonomy: Taxonomy) -> tuple[tuple[str, ...], tuple[str, ...]]:
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


def _hits(found: Found, head: str, headings: Sequence[str], taxonomy: Taxonomy) -> _Hits:
    """Where each term stands, and what it is worth there: its best place in a field counts, not their number."""
    terms = taxonomy.terms
    find = taxonomy.matcher.find
    hits: _Hits = {}
    for field, tokens in _fields(found, head, headings):
        for index, longer in find(tokens):
            category, _, hint = terms[index]
            worth = _WORTH[field] * _HINT if hint else _WORTH[field]
            if longer:
                if any(terms[other].category == category for other in longer):
                    continue
                worth *= _COVERED
            fields = hits.setdefault(index, {})
            if worth > fields.get(field, 0.0):
                fields[field] = worth
    return hits


def _fields(found: Found, head: str, headings: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each field's name and words."""
    name = words(found.name[: _READ["name"]])
    yield "name", name
    yield from _description(found.description[: _READ["description"]])
    yield "tags", _joined(found.tags, _READ["tags"])
    folders = found.folder[-_READ["folder"] :].split("/")
    if words(folders[-1]) == name:
        folders.pop()  # it only repeats the name
    yield "folder", _joined(folders, _READ["folder"])
    yield "headings", _joined(headings, _READ["headings"])
    yield "head", words(head[: _READ["head"]])


def _description(text: str) -> Iterator[tuple[str, list[str]]]:
    """What the skill is for and when to use it; what it is not for says nothing about it."""
    said: dict[str, list[str]] = {clauses.PURPOSE: [], clauses.TRIGGER: [], clauses.LIMIT: []}
    for kind, clause in clauses.split(text):
        said[kind] += [*words(clause), _BREAK]
    yield "description", said[clauses.PURPOSE]
    yield "triggers", said[clauses.TRIGGER]


def _joined(texts: Sequence[str], most: int) -> list[str]:
    """The words of several texts, breaks between them, at most `most` characters in all."""
    tokens: list[str] = []
    for text in texts:
        if most <= 0:
            break
        tokens += [*words(text[:most]), _BREAK]
        most -= len(text) + 1
    return tokens


def _decide(hits: _Hits, taxonomy: Taxonomy) -> tuple[str, ...]:
    """The categories whose terms add up, the best first; equal scores go by ID."""
    strong: dict[str, float] = {}
    weak: dict[str, float] = {}
    for index, fields in hits.items():
        best = max(fields.values())
        worth = best + _AGAIN * (sum(fields.values()) - best)
        scores = weak if _WEAK.issuperset(fields) else strong
        category = taxonomy.terms[index].category
        scores[category] = scores.get(category, 0.0) + worth
    # Rounded, because the order of the additions must not decide between equals.
    total = {
        category: round(strong.get(category, 0.0) + min(weak.get(category, 0.0), _WEAK_MOST), 6)
        for category in strong.keys() | weak.keys()
    }
    ranked = sorted(total, key=lambda category: (-total[category], category))
    best = total[ranked[0]] if ranked else 0.0
    least = max(_SURE, min(_SHARE * best, _CLEAR))
    sure = tuple(category for category in ranked if total[category] >= least)
    return sure[:MOST_CATEGORIES] or tuple(ranked[:1] if best >= _LIKELY else ())


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
        for _, text, field in sorted(rows)[:MOST_EVIDENCE]
    ]
