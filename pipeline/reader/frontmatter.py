"""Splits a text into frontmatter values and body: strict YAML first, then one repair, saying which it was."""

from __future__ import annotations

from typing import NamedTuple

from pipeline.reader import fence
from pipeline.reader.repair import repair
from pipeline.reader.tree import Place, Tree, TreeError, Value, load

# Lower-case keys that the reader uses; a repair looks at no others.
WANTED = frozenset(
    (
        "name",
        "description",
        "summary",
        "tags",
        "metadata",
        "retrieval_categories",
        "hide",
        "disablemodelinvocation",
        "disable-model-invocation",
        "disable_model_invocation",
    )
)


class Split(NamedTuple):
    """A text taken apart. found: whether there is frontmatter at all. values: None when it is not a mapping.

    block: the YAML text that `places` point into. prose: the body without a second block of frontmatter.
    """

    found: bool
    values: dict[str, Value] | None
    block: str
    places: dict[str, Place]
    aliases: frozenset[str]
    body: str
    prose: str


def split(text: str, noted: dict[str, None], refused_at: int = -1) -> Split:
    """Frontmatter and body of `text`; adds the diagnostics to `noted`. Never raises.

    refused_at: where a character was dropped that YAML refuses, so that inside the frontmatter it was not YAML.
    """
    begin = fence.opening(text)
    part = fence.block(text, begin) if begin else None
    if begin is None or part is None:
        return _no_frontmatter(text, noted)
    tree = _strict(text, part)
    if tree is None and begin.fenced and not part.diagnostics and (other := fence.shorter(text, part)):
        part = other
        tree = _strict(text, part)
    source = text[part.start : part.end]
    if _is_prose(source, tree, part):
        return _no_frontmatter(text, noted)
    noted.update(dict.fromkeys((*begin.diagnostics, *part.diagnostics)))
    if part.start <= refused_at <= part.end:
        noted["yaml_error"] = None
    body = text[part.body :]
    if begin.wrapped:
        body = fence.without_wrapper(body)
    if begin.before:
        body = f"{begin.before}\n{body}"
    read = _read(source, tree, noted)
    return _with_second(read._replace(body=body, prose=body), noted)


def _no_frontmatter(text: str, noted: dict[str, None]) -> Split:
    noted["no_frontmatter"] = None
    return Split(False, None, "", {}, frozenset(), text, text)


def _strict(text: str, part: fence.Block) -> Tree | None:
    try:
        return load(text[part.start : part.end])
    except TreeError:
        return None


def _is_prose(source: str, tree: Tree | None, part: fence.Block) -> bool:
    """Whether the fences are mere rules of a document without frontmatter."""
    if tree is not None and isinstance(tree.value, str):
        stripped = source.strip()
        return stripped.startswith("#") or "\n\n" in stripped
    if "unclosed_frontmatter" in part.diagnostics and (tree is None or not isinstance(tree.value, dict)):
        return not fence.has_key(source)
    return False


def _read(source: str, tree: Tree | None, noted: dict[str, None]) -> Split:
    if tree is None or (isinstance(tree.value, str) and fence.has_key(source)):
        noted["yaml_error"] = None  # lines like `name:boats` are one text to YAML
        values, duplicates = repair(source, WANTED)
        _note_duplicates(duplicates, noted)
        return Split(True, values, source, {}, frozenset(), "", "")
    if tree.value is None:
        return Split(True, {}, source, {}, frozenset(), "", "")
    if not isinstance(tree.value, dict):
        noted["frontmatter_not_mapping"] = None
        return Split(True, None, source, {}, frozenset(), "", "")
    _note_duplicates(tree.duplicates, noted)
    return Split(True, tree.value, source, tree.places, tree.aliases, "", "")


def _note_duplicates(keys: tuple[str, ...], noted: dict[str, None]) -> None:
    for key in keys[:8]:
        noted["duplicate_key:" + "".join(c for c in key[:64] if c.isprintable())] = None


def _with_second(read: Split, noted: dict[str, None]) -> Split:
    """Takes a second block right under the first into account: it fills what the first leaves out."""
    if not read.body.lstrip().startswith("---"):
        return read
    second = fence.second_block(read.body, 0)
    if second is None:
        return read
    noted["double_frontmatter"] = None
    prose = read.body[second.body :]
    tree = _strict(read.body, second)
    if tree is None or not isinstance(tree.value, dict):
        return read._replace(prose=prose)
    return read._replace(prose=prose, values={**tree.value, **(read.values or {})})
