"""Takes name, description, tags, categories and the hidden flag out of frontmatter values of any shape."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from pipeline.reader.repair import Opaque, Raw, without_comment
from pipeline.reader.texts import clean, cut, one_line
from pipeline.reader.tree import Plain, TreeError, Value, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.reader.frontmatter import Split

MAX_NAME = 256  # characters kept; beyond 64 a name has a diagnostic
MAX_DESCRIPTION = 4_000
MAX_TAGS = 64
MAX_TAG = 80

_MISSING: Final = object()
_HIDING_KEYS = ("hide", "disable-model-invocation", "disableModelInvocation", "disable_model_invocation")
_TRUE = frozenset(("true", "yes", "on", "1", "y"))
_LEAVES = 200  # texts taken out of one value at most
_DEPTH = 6
_PLACEHOLDER = re.compile(
    r"\{\{.*\}\}|\$\{.*\}|<[^<>]{1,200}>|\[(?:TODO|TBD|FIXME|XXX|(?i:your|insert|describe))\b.*\]"
    r"|(?:TODO|TBD|FIXME|XXX)(?:[ \t]?:.*)?",
    re.DOTALL,
)
_TEMPLATE_NAMES = frozenset(
    ("your-skill-name", "your_skill_name", "my-skill-name", "skill-name-here", "[skill-name]", "[name]")
)
_LIST_SPLIT = re.compile(r"[,;\n\uff0c\u3001]")
_COMMENT = re.compile(r"[ \t]+#|#(?=\S)")


def name(split: Split, folder: str, noted: dict[str, None]) -> str:
    """The skill's name: what the frontmatter gives, else `folder`. For display, never a path."""
    if split.values is None:
        return folder
    value = _lookup(split.values, "name", noted)
    if value is _MISSING or value is None:
        noted["name_missing"] = None
        return folder
    if not isinstance(value, str):
        if _is_placeholder(": ".join(_leaves(value, keys=True))):
            noted["placeholder"] = None
        noted["name_not_string"] = None
        return folder
    given = clean(without_comment(value) if isinstance(value, Raw) else value, noted)
    if not given:
        noted["name_missing"] = None
        return folder
    if _is_placeholder(given) or given.lower() in _TEMPLATE_NAMES:
        noted["placeholder"] = None
        return folder
    if isinstance(value, Plain) and not value.is_text:
        noted["name_not_string"] = None
    _judge_name(given, folder, noted)
    return cut(given, MAX_NAME)


def _judge_name(given: str, folder: str, noted: dict[str, None]) -> None:
    if not _is_kebab(given):
        noted["name_not_kebab"] = None
    if len(given) > 64:
        noted["name_over_64"] = None
    if unicodedata.normalize("NFC", given) != unicodedata.normalize("NFC", folder):
        noted["name_differs_from_dir"] = None


def _is_kebab(given: str) -> bool:
    """Lower-case letters (of any script) and digits in words joined by single hyphens."""
    return given == given.lower() and all(
        word and all(c.isalnum() or unicodedata.category(c)[0] == "M" for c in word) for word in given.split("-")
    )


def description(split: Split, paragraph: str, noted: dict[str, None]) -> str:
    """The description on one line: the frontmatter's, else its summary, else `paragraph`."""
    text = "" if split.values is None else _described(split, split.values, noted)
    cleaned = clean(text, noted) or clean(paragraph, noted)
    if _is_placeholder(cleaned):
        noted["placeholder"] = None
    if len(cleaned) > MAX_DESCRIPTION:
        noted["description_cut"] = None
    return cut(cleaned, MAX_DESCRIPTION)


def _described(split: Split, values: dict[str, Value], noted: dict[str, None]) -> str:
    value = _lookup(values, "description", noted)
    text = ""
    if value is _MISSING:
        noted["description_missing"] = None
    elif value is None or (isinstance(value, str) and not value.strip()):
        text = _commented(split, "", noted)
        if not text:
            noted["description_empty"] = None
    elif isinstance(value, str):
        if isinstance(value, Plain) and not value.is_text:
            noted["description_not_string"] = None
        text = _commented(split, value, noted)
    else:
        noted["description_not_string"] = None
        text = _flat(value)
    if one_line(text):
        return text
    summary = _lookup(values, "summary", {})
    return "" if summary is _MISSING else _flat(summary)


def _commented(split: Split, value: str, noted: dict[str, None]) -> str:
    """`value` with the rest of its line that YAML took for a comment or an anchor: its author meant text."""
    key = next((key for key in split.places if key == "description"), "")
    key = key or next((key for key in split.places if key.lower() == "description"), "")
    if not key or not split.places[key].plain:
        return value
    place = split.places[key]
    end = split.block.find("\n", place.end)
    rest = split.block[place.end : end if end >= 0 else len(split.block)]
    comment = _COMMENT.match(rest) if value else _COMMENT.match(rest.lstrip())
    if comment and (value or rest.lstrip()[1:2] not in ("", " ", "\t", "#")):
        noted["yaml_comment_in_value"] = None
        value = f"{value}{rest}"
    if place.anchor and place.anchor not in split.aliases:
        noted["yaml_anchor_in_value"] = None
        value = f"&{place.anchor} {value}"
    return value


def tags(split: Split) -> tuple[str, ...]:
    """The tags of the frontmatter and of its metadata, each once, as written."""
    values = split.values or {}
    found: list[str] = []
    for value in (_lookup(values, "tags", {}), *_in_metadata(values, "tags", below=True)):
        found.extend(_items(value))
    return _distinct(found)


def categories(split: Split) -> tuple[str, ...]:
    """What `retrieval_categories` asks for, in the frontmatter or its metadata."""
    values = split.values or {}
    found: list[str] = []
    for value in (
        _lookup(values, "retrieval_categories", {}),
        *_in_metadata(values, "retrieval_categories", below=False),
    ):
        found.extend(_items(value))
    return _distinct(found)


def hidden(split: Split) -> bool:
    """Whether the skill asks to be kept out of an agent's prompt."""
    for key in _HIDING_KEYS:
        value = _lookup(split.values or {}, key, {})
        if isinstance(value, str) and without_comment(value).strip().lower() in _TRUE:
            return True
    return False


def _lookup(values: dict[str, Value], key: str, noted: dict[str, None]) -> Value:
    """The value under `key`, exactly so or else in another case, or `_MISSING`."""
    if key in values:
        return values[key]
    lower = key.lower()
    for other, value in values.items():
        if other.strip().lower() == lower:
            noted["key_case"] = None
            return value
    return _MISSING


def _in_metadata(values: dict[str, Value], key: str, *, below: bool) -> Iterator[Value]:
    """The values under `key` in the metadata, and one level deeper if `below`; metadata may be a mapping in a text."""
    metadata = _lookup(values, "metadata", {})
    if isinstance(metadata, str) and metadata.lstrip().startswith("{"):
        try:
            metadata = load(metadata).value
        except TreeError:
            return
    if not isinstance(metadata, dict):
        return
    yield metadata.get(key)
    if below:
        for value in metadata.values():
            if isinstance(value, dict):
                yield value.get(key)


def _items(value: Value) -> Iterator[str]:
    """The entries of a list given as a list, a mapping, a comma-separated text, a bracketed text or #words."""
    if isinstance(value, str):
        text = value.strip()[: MAX_TAGS * MAX_TAG]
        if text[:1] == "[":
            text = text[1:].removesuffix("]")
        words = text.split()
        hashed = len(words) > 1 and all(word[0] == "#" for word in words)
        for item in words if hashed else _LIST_SPLIT.split(text):
            yield item.strip().strip("\"'").lstrip("#")
    elif isinstance(value, dict):
        for key, below in list(value.items())[:MAX_TAGS]:
            yield from (key,) if below is None or isinstance(below, Plain) else _leaves(below)
    elif isinstance(value, list):
        yield from _leaves(value)


def _distinct(found: list[str]) -> tuple[str, ...]:
    kept: dict[str, str] = {}
    for item in found:
        text = cut(clean(item, {}), MAX_TAG)
        if text and text[0] not in "*&":  # what is left of an alias or anchor that did not resolve
            kept.setdefault(text.casefold(), text)
    return tuple(kept.values())[:MAX_TAGS]


def _flat(value: Value) -> str:
    return value if isinstance(value, str) else " ".join(_leaves(value))


def _leaves(value: Value, *, keys: bool = False) -> Iterator[str]:
    """The texts in a value in order, at most 200 of them and no deeper than 6 levels. Shared parts count each time."""
    stack: list[tuple[Value, int]] = [(value, 0)]
    steps = 0
    while stack and steps < _LEAVES:
        steps += 1
        item, depth = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Opaque) or item is None or depth >= _DEPTH:
            continue
        elif isinstance(item, dict):
            pairs = [
                part for key, below in list(item.items())[:_LEAVES] for part in ((key, below) if keys else (below,))
            ]
            stack.extend((part, depth + 1) for part in reversed(pairs))
        else:
            stack.extend((part, depth + 1) for part in reversed(item[:_LEAVES]))


def _is_placeholder(text: str) -> bool:
    return _PLACEHOLDER.fullmatch(text.strip()) is not None
