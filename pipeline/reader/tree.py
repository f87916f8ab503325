"""Loads YAML as plain texts, lists and dictionaries, with bounded work: no types, no objects, no deep recursion."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml
from yaml import events
from yaml._yaml import CParser
from yaml.resolver import Resolver

# Far above any skill's frontmatter. An alias counts as much as what it stands for, so a bomb reaches MAX_NODES at once.
MAX_TEXT = 65_536
MAX_DEPTH = 48
MAX_NODES = 8_000
MAX_ALIASES = 256

_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(("str", "int", "float", "bool", "null", "binary", "timestamp", "value", "merge"))
_COLLECTION_TAGS = frozenset(("seq", "map", "set", "omap", "pairs"))
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_MERGE = "<<"
_GUESSED = frozenset(_CORE + kind for kind in ("int", "float", "bool", "null", "timestamp"))
_RESOLVER: Any = Resolver()

Value = Any  # None, str, Plain, list[Value] or dict[str, Value]


class TreeError(ValueError):
    """Text that is not YAML, that asks for more than text, or that goes beyond the limits."""


class Plain(str):
    """An unquoted scalar: the text as written, which YAML might read as a number, a date or a truth value."""

    __slots__ = ()

    @property
    def is_text(self) -> bool:
        """Whether YAML reads it as a string."""
        return _RESOLVER.resolve(yaml.ScalarNode, str(self), (True, False)) not in _GUESSED


class Place(NamedTuple):
    """Where a top-level scalar stands in the text (character offsets), and its anchor."""

    start: int
    end: int
    plain: bool
    anchor: str


class Tree(NamedTuple):
    """What was loaded. places: of the top-level scalars by key. duplicates: keys given twice, the last one wins."""

    value: Value
    places: dict[str, Place]
    duplicates: tuple[str, ...]
    aliases: frozenset[str]


class _Frame:
    """A collection under construction. weight: how many nodes it holds with its aliases written out."""

    __slots__ = ("anchor", "items", "key", "mapping", "merged", "weight")

    def __init__(self, mapping: bool, anchor: str | None) -> None:
        self.mapping = mapping
        self.items: Any = {} if mapping else []
        self.anchor = anchor
        self.key: str | None = None
        self.merged: list[Value] = []
        self.weight = 1


class _Builder:
    """Takes events one by one; iterative, so that depth costs a counter and not the stack."""

    def __init__(self, anchors: dict[str, tuple[Value, int]]) -> None:
        self.anchors = anchors
        self.stack: list[_Frame] = []
        self.value: Value = None
        self.documents = 0
        self.nodes = 0
        self.places: dict[str, Place] = {}
        self.duplicates: list[str] = []
        self.aliases: list[str] = []

    def scalar(self, event: Any) -> None:
        text = _text(event)
        stack = self.stack
        if len(stack) == 1 and stack[0].key is not None:
            self.places[stack[0].key] = Place(
                event.start_mark.index, event.end_mark.index, bool(event.implicit[0]), event.anchor or ""
            )
        self.add(text, 1, event.anchor)

    def alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            raise TreeError(f"undefined alias {event.anchor[:40]}")
        self.aliases.append(event.anchor)
        if len(self.aliases) > MAX_ALIASES:
            raise TreeError("too many aliases")
        value, weight = self.anchors[event.anchor]
        self.add(value, weight, None)

    def open(self, event: Any, mapping: bool) -> None:
        if event.tag not in (None, "!") and event.tag.removeprefix(_CORE) not in _COLLECTION_TAGS:
            raise TreeError("tag that is not plain data")
        if len(self.stack) >= MAX_DEPTH:
            raise TreeError("nested too deeply")
        if self.stack and self.stack[-1].mapping and self.stack[-1].key is None:
            raise TreeError("a key that is not text")
        self.stack.append(_Frame(mapping, event.anchor))

    def close(self) -> None:
        frame = self.stack.pop()
        for base in frame.merged:  # what the mapping says itself wins over what it merges, earlier bases over later
            self.nodes += len(base) + len(frame.items)
            if self.nodes > MAX_NODES:
                raise TreeError("too much data")
            frame.items = {**base, **frame.items}
        self.add(frame.items, frame.weight, frame.anchor)

    def add(self, value: Value, weight: int, anchor: str | None) -> None:
        self.nodes += 1
        if anchor:
            self.anchors[anchor] = (value, weight)
        if not self.stack:
            self.value = value
            return
        frame = self.stack[-1]
        frame.weight += weight
        if frame.weight > MAX_NODES or self.nodes > MAX_NODES:
            raise TreeError("too much data")
        if not frame.mapping:
            frame.items.append(value)
        elif frame.key is None:
            frame.key = _key(value)
        else:
            self._entry(frame, frame.key, value)
            frame.key = None

    def _entry(self, frame: _Frame, key: str, value: Value) -> None:
        if key == _MERGE:
            bases = value if isinstance(value, list) else [value]
            if not all(isinstance(base, dict) for base in bases):
                raise TreeError("merges something that is not a mapping")
            frame.merged.extend(bases)
            return
        if key in frame.items and len(self.stack) == 1:
            self.duplicates.append(key)
        frame.items[key] = value


def load(text: str, anchors: dict[str, tuple[Value, int]] | None = None) -> Tree:
    """The one YAML document in `text`. Raises `TreeError`.

    Scalars come back as their source text, plain nulls as None. `anchors` are known beforehand and added to, so that
    parts of a document can be loaded one by one.
    """
    if len(text) > MAX_TEXT:
        raise TreeError("too long")
    builder = _Builder({} if anchors is None else anchors)
    parser = CParser(str(text))  # takes no subclass of str
    try:
        _feed(parser, builder)
    except (yaml.YAMLError, UnicodeError) as error:
        raise TreeError(str(error)) from error
    finally:
        parser.dispose()
    return Tree(builder.value, builder.places, tuple(dict.fromkeys(builder.duplicates)), frozenset(builder.aliases))


def _feed(parser: Any, builder: _Builder) -> None:
    while (event := parser.get_event()) is not None:
        kind = type(event)
        if kind is events.ScalarEvent:
            builder.scalar(event)
        elif kind is events.MappingStartEvent:
            builder.open(event, mapping=True)
        elif kind is events.SequenceStartEvent:
            builder.open(event, mapping=False)
        elif kind is events.MappingEndEvent or kind is events.SequenceEndEvent:
            builder.close()
        elif kind is events.AliasEvent:
            builder.alias(event)
        elif kind is events.DocumentStartEvent:
            builder.documents += 1
            if builder.documents > 1:
                raise TreeError("more than one document")


def _text(event: Any) -> Value:
    tag = event.tag
    if tag is None or tag == "!":
        if not event.implicit[0]:
            return event.value
        return None if event.value in _NULLS else Plain(event.value)
    kind = tag.removeprefix(_CORE)
    if kind == tag or kind not in _SCALAR_TAGS:
        raise TreeError("tag that is not plain data")
    if kind == "str":
        return event.value
    return None if kind == "null" else Plain(event.value)


def _key(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return str(value)
    raise TreeError("a key that is not text")
