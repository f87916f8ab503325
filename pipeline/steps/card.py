"""The card step: one Markdown page per skill, in which nothing that the skill says can act as markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from pipeline.model import Link
from serve.cards import card_key
from serve.contract import Descriptor, Record

MAX_TITLE = 200
MAX_ITEM = 1_000
MAX_PURPOSE = 4_000
MAX_HEAD = 1_200  # enough to recognise a skill: IWE reads every card at each start
MAX_LIST = 100

# Controls, zero-width characters, direction marks, tag characters, halves of surrogate pairs, non-characters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufe00-\ufe0f\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)
# Whatever opens or closes inline markup in CommonMark, in GitHub's dialect or in a wiki, and the `@` of addresses.
_INLINE = re.compile(r"[\\`*_\[\]{}<>&#!|~$^@]")
_WWW = re.compile(r"\bwww(?=\.)", re.IGNORECASE)
# Whatever opens a block at the start of a line and is not escaped everywhere: lists, rules, underlines of headings.
_BLOCK = re.compile(r"[-+=:%]|(?<=[0-9])[.)]")
_NUMBERED = re.compile(r"[0-9]{1,12}[.)]")


def make(record: Record, descriptor: Descriptor) -> str:
    """The card of one skill: YAML frontmatter that `iwe find --filter` reads, then what the skill says of itself."""
    title = title_of(record)
    parts = [_frontmatter(record, title), f"# {inline(title)}"]
    parts += [line(descriptor.purpose, MAX_PURPOSE)] if descriptor.purpose else []
    parts += _items("Use when", descriptor.triggers)
    parts += _items("Not for", descriptor.limits)
    parts += _items("Topics", descriptor.headings)
    head = line(descriptor.head, MAX_HEAD)
    if head:
        parts += ["## Begins with", head]
    return "\n\n".join(part for part in parts if part) + "\n"


def card_path(skill_id: str) -> str:
    """Where a skill's card lies below the catalog."""
    return f"{card_key(skill_id)}.md"


def title_of(record: Record | Link) -> str:
    """The name to show: the record's, or its folder's when that holds nothing visible."""
    return plain(record.name)[:MAX_TITLE].strip() or plain(record.id.rsplit("/", 1)[-1])[:MAX_TITLE] or "unnamed"


def plain(text: str) -> str:
    """A text on one line, white space folded, nothing invisible left."""
    return " ".join(_INVISIBLE.sub("", text).split())


def inline(text: str) -> str:
    """One line of foreign text as Markdown that shows exactly that text, for use within a line."""
    safe = _INLINE.sub(_escaped, text)  # a function: `re` expands a template ten times more slowly
    if "://" in safe:
        safe = safe.replace("://", "\\://")
    return _WWW.sub(r"\g<0>\\", safe) if "www." in safe.lower() else safe


def line(text: str, limit: int = MAX_ITEM) -> str:
    """Foreign text as Markdown that shows exactly that text, for use as a whole paragraph or list item."""
    shown = plain(text[: 2 * limit])[:limit].rstrip()
    safe = inline(shown)
    if _NUMBERED.match(safe):
        return _BLOCK.sub(_escaped, safe, count=1)
    return f"\\{safe}" if _BLOCK.match(safe) else safe


def yaml(value: str | Sequence[str]) -> str:
    """A text, or a list of texts, as a YAML flow value. A JSON string without controls is one."""
    if isinstance(value, str):
        return json.dumps(plain(value), ensure_ascii=False)
    return json.dumps([plain(item)[:MAX_TITLE] for item in value[:MAX_LIST]], ensure_ascii=False)


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def _frontmatter(record: Record, title: str) -> str:
    fields = {
        "title": title,
        "kind": "skill",
        "id": record.id,
        "source": record.source,
        "state": record.state,
        "harness": record.harness,
        "native_in": record.native_in,
        "hidden_in": record.hidden_in,
        "categories": record.categories,
        "tags": record.tags,
        "path": record.path,
    }
    return "\n".join(["---", *(f"{key}: {yaml(value)}" for key, value in fields.items()), "---"])


def _items(title: str, texts: Iterable[str]) -> list[str]:
    shown = [f"- {text}" for text in map(line, texts) if text]
    return [f"## {title}", "\n".join(shown)] if shown else []
