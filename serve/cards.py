"""Where a skill's card lies in the catalog: the key by which IWE knows it, made of nothing but the skill's ID."""

from __future__ import annotations

import re
import unicodedata

from blake3 import blake3

CARDS = "skills/"  # the keys of all cards begin so
DIGEST = 16  # hex digits that end a card's key

_MAX_SLUG = 60
_NOT_SLUG = re.compile(r"[^a-z0-9]+")


def card_key(skill_id: str) -> str:
    """The key of a skill's card: its path below the catalog without `.md`, unique for each ID, made of lower-case ASCII."""
    source, _, folder = skill_id.partition(":")
    name = folder.rsplit("/", 1)[-1]
    return f"{CARDS}{slug(source)}/{slug(name)}-{short_digest(skill_id)}"


def slug(text: str) -> str:
    """Lower-case ASCII words joined by hyphens; "skill" when nothing is left. Not unique: see `exact_slug`."""
    plain_ascii = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return _NOT_SLUG.sub("-", plain_ascii.lower()).strip("-")[:_MAX_SLUG].rstrip("-") or "skill"


def exact_slug(text: str) -> str:
    """A slug that no other text has: followed by a digest unless the text is its own slug."""
    made = slug(text)
    return made if made == text else f"{made}-{short_digest(text)}"


def short_digest(text: str) -> str:
    """DIGEST hex digits that tell texts apart."""
    return blake3(text.encode("utf-8", "surrogatepass")).hexdigest(length=DIGEST // 2)
