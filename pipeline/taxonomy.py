"""The category vocabulary (`taxonomy.toml`) and the assignments made by hand (`category-overrides.toml`).

Both are parsed and checked here; the first mistake is one error that names the file, the line and the remedy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec
from blake3 import blake3

from pipeline.config.document import Document
from pipeline.config.suggest import did_you_mean, shown
from pipeline.config.toml_lines import line_numbers
from pipeline.errors import ConfigError
from pipeline.keywords import Matcher, joined, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VERSION = 1
LONGEST_ID = 64  # characters; IDs become file names
LONGEST_TERM = 100  # characters

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_KEYS = ("id", "label", "keywords", "hints")
_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class Category(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the vocabulary.

    keywords: words and phrases that speak for it. hints: words that many other skills use too, and that count less.
    Both are folded (lower case, one spelling for hyphen, underscore and blank) and sorted.
    """

    id: str
    label: str
    keywords: tuple[str, ...]
    hints: tuple[str, ...] = ()


class Term(NamedTuple):
    """One keyword or hint of one category."""

    category: str
    text: str
    hint: bool


@dataclass(frozen=True)
class Taxonomy:
    """The whole vocabulary, sorted by ID: the order of the file means nothing."""

    categories: tuple[Category, ...]

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """Label by category ID."""
        return {category.id: category.label for category in self.categories}

    @cached_property
    def digest(self) -> str:
        """blake3 hex of what the file means: comments, order and spelling variants of terms do not change it."""
        return blake3(msgspec.json.encode((VERSION, self.categories))).hexdigest()

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Every keyword and hint; an index into it is what `matcher` reports."""
        return tuple(
            Term(category.id, text, hint)
            for category in self.categories
            for hint, texts in ((False, category.keywords), (True, category.hints))
            for text in texts
        )

    @cached_property
    def matcher(self) -> Matcher:
        """Finds the terms of all categories in one pass over a text."""
        return Matcher((term.text, index) for index, term in enumerate(self.terms))


@dataclass(frozen=True)
class Overrides:
    """Categories given by hand, by exact skill ID."""

    skills: Mapping[str, tuple[str, ...]]

    def of(self, skill_id: str) -> tuple[str, ...] | None:
        """The categories given to this skill by hand, or None when nothing was."""
        return self.skills.get(skill_id)

    def digest_of(self, source: str) -> str:
        """blake3 hex of the assignments for the skills of one source; their order in the file means nothing."""
        own = sorted((skill, given) for skill, given in self.skills.items() if skill.startswith(f"{source}:"))
        return blake3(msgspec.json.encode(own)).hexdigest()

    def unmatched(self, ids: Iterable[str]) -> tuple[str, ...]:
        """The overridden IDs that are none of `ids`, sorted: each deserves a warning, for it has no effect."""
        return tuple(sorted(self.skills.keys() - set(ids)))


NOTHING = Overrides({})


def load_taxonomy(text: str, path: str) -> Taxonomy:
    """Parse `taxonomy.toml`. `path` is for messages only. Raises ConfigError for the first mistake."""
    file = _File(text, path)
    file.refuse_unknown((), file.data, ("version", "categories"))
    version = file.data.get("version")
    if type(version) is not int or version != VERSION:
        what = "the taxonomy has no version" if version is None else f"unknown taxonomy version {shown(version)}"
        file.fail(("version",), what, f"write version = {VERSION} at the top of the file")
    tables = file.data.get("categories")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        file.fail(
            ("categories",),
            "the taxonomy has no categories",
            "add a [[categories]] block with id, label and keywords; the word stands in two pairs of brackets",
        )
    numbers: dict[str, int] = {}
    categories = []
    for number, table in enumerate(tables):
        category = _category(file, number, table)
        first = numbers.setdefault(category.id, number)
        if first != number:
            line = file.where("categories", first, "id").rpartition(":")[2]
            what = f"two categories have the id {shown(category.id)}, the other on line {line}"
            file.fail(("categories", number, "id"), what, "rename one of them, or merge the two blocks")
        categories.append(category)
    return Taxonomy(tuple(sorted(categories, key=lambda category: category.id)))


@lru_cache(maxsize=2)
def known_taxonomy(text: str, path: str) -> Taxonomy:
    """`load_taxonomy`, once per text and process: its matcher is worth keeping."""
    return load_taxonomy(text, path)


def load_overrides(text: str, path: str, taxonomy: Taxonomy) -> Overrides:
    """Parse `category-overrides.toml`. `path` is for messages only. Raises ConfigError for the first mistake."""
    file = _File(text, path)
    file.refuse_unknown((), file.data, ("skills",))
    table = file.data.get("skills", {})
    if not isinstance(table, dict):
        file.fail(("skills",), "skills must be a table", "write [skills] on a line of its own")
    return Overrides({skill: _override(file, taxonomy, skill, value) for skill, value in table.items()})


def _category(file: _File, number: int, table: dict[str, Any]) -> Category:
    here = ("categories", number)
    file.refuse_unknown(here, table, _KEYS)
    identifier = table.get("id")
    if not isinstance(identifier, str) or not _ID.fullmatch(identifier) or len(identifier) > LONGEST_ID:
        what = "a category has no id" if identifier is None else f"{shown(identifier)} cannot be the id of a category"
        likely = "-".join(words(identifier))[:LONGEST_ID] if isinstance(identifier, str) else ""
        rule = f"use lower-case words joined by single hyphens, at most {LONGEST_ID} characters"
        file.fail((*here, "id"), what, f"{rule}, like {shown(likely)}" if _ID.fullmatch(likely) else rule)
    label = table.get("label")
    if not isinstance(label, str) or not label.strip() or not label.isprintable():
        what = f"the category {shown(identifier)} has no label"
        if label is not None and label != "":
            what = f"the label of the category {shown(identifier)} is {shown(label)}"
        file.fail((*here, "label"), what, 'give it one line of text, like label = "Cloud security"')
    keywords = _terms(file, here, table.get("keywords"), "keywords", identifier)
    hints = _terms(file, here, table["hints"], "hints", identifier) if "hints" in table else ()
    for both in sorted(set(keywords) & set(hints)):
        what = f"{shown(both)} is both a keyword and a hint of the category {shown(identifier)}"
        file.fail((*here, "hints"), what, "keep it in one of the two lists")
    return Category(id=identifier, label=" ".join(label.split()), keywords=keywords, hints=hints)


def _terms(file: _File, here: tuple[str | int, ...], value: object, key: str, category: str) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given:
        what = f"the category {shown(category)} has no {key}"
        if value is not None and value != []:
            what = f"the {key} of the category {shown(category)} are not a list of texts"
        file.fail((*here, key), what, f'write {key} = ["…", "…"]')
    folded = set()
    for number, term in enumerate(given):
        parts = words(term) if isinstance(term, str) and len(term) <= LONGEST_TERM else []
        if not parts:
            file.fail(
                (*here, key, number),
                f"{shown(term)} in the {key} of the category {shown(category)} cannot be found in any text",
                f"write a text with at least one letter or digit and at most {LONGEST_TERM} characters",
            )
        folded.add(joined(parts))
    return tuple(sorted(folded))


def _override(file: _File, taxonomy: Taxonomy, skill: str, value: object) -> tuple[str, ...]:
    here = ("skills", skill)
    if ":" not in skill:
        file.fail(
            here,
            f"{shown(skill)} is not the ID of a skill",
            'write the whole ID in quotes, like "my-source:folder/of/skill" = ["research"]',
        )
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given or not all(isinstance(item, str) for item in given):
        what = f"the override of {shown(skill)} gives no list of categories"
        file.fail(here, what, "write one category id or a list of them, or remove the line")
    for number, category in enumerate(given):
        if category not in taxonomy.labels:
            file.fail(
                (*here, number),
                f"the override of {shown(skill)} gives the unknown category {shown(category)}",
                did_you_mean(category, taxonomy.labels, "use an id of the taxonomy, or add a category there first"),
            )
    return tuple(dict.fromkeys(given))


class _File:
    """A parsed file that can say where a mistake is. The lines are looked up when there is one."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text.removeprefix("\ufeff")
        self._path = path
        self.data = self._parse()

    def _parse(self) -> dict[str, Any]:
        import tomllib  # here, because a search reads neither file, and saves its 8 ms

        try:
            return tomllib.loads(self._text)
        except RecursionError as error:
            raise ConfigError("nested too deeply", where=self._path, next_step="flatten it") from error
        except ValueError as error:
            found = _POSITION.search(str(error))
            line = (found and found[1]) or self._text.rstrip("\n").count("\n") + 1
            reason = shown(_POSITION.sub("", str(error))).strip('"')
            raise ConfigError(
                f"not valid TOML: {reason[:1].lower()}{reason[1:]}",
                where=f"{self._path}:{line}",
                next_step="correct that line; texts stand in quotes, lists in brackets",
            ) from error

    def where(self, *address: str | int) -> str:
        """file:line of a key, or of the nearest thing around it."""
        return Document(Path(self._path), self.data, line_numbers(self._text)).at(*address)

    def fail(self, address: tuple[str | int, ...], what: str, next_step: str) -> NoReturn:
        raise ConfigError(what, where=self.where(*address), next_step=next_step)

    def refuse_unknown(self, here: tuple[str | int, ...], table: Mapping[str, object], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                what = f"unknown key {shown(key)}"
                self.fail((*here, key), what, did_you_mean(key, known, f"known are {', '.join(known)}"))
