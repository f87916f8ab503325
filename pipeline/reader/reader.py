"""Puts the parts of the reader together: bytes and a folder's name in, a `Reading` out."""

from __future__ import annotations

from pipeline.model import Reading
from pipeline.reader import fields, frontmatter, markdown
from pipeline.reader.texts import clean
from serve.decode import decode


def read_skill(data: bytes, folder: str) -> Reading:
    """What the SKILL.md with the bytes `data` says, in the folder `folder` ("/"-separated; its last part names it).

    Pure, never raises for any bytes, in time linear in their number. What had to be mended stands in `diagnostics`,
    in the order in which it was met.
    """
    text, found, crlf, refused_at = decode(data)
    noted: dict[str, None] = dict.fromkeys(found)
    label = clean(folder.rstrip("/").rpartition("/")[2], {}) or "unnamed"
    if not text.strip():
        noted["empty_file"] = None
        return _reading(label, "", frontmatter.Split(False, None, "", {}, frozenset(), "", ""), noted)
    split = frontmatter.split(text, noted, refused_at)
    if split.found:
        if crlf:
            noted["crlf"] = None
        if not split.body.strip():
            noted["empty_body"] = None
    name = fields.name(split, label, noted)
    description = fields.description(split, markdown.first_paragraph(split.prose), noted)
    return _reading(name, description, split, noted)


def _reading(name: str, description: str, split: frontmatter.Split, noted: dict[str, None]) -> Reading:
    # Late, because numpy is slow to import and a build that finds nothing changed reads nothing.
    from pipeline.reader import sketch

    body = split.body.strip()
    folded = sketch.fold(body)
    return Reading(
        name=name,
        description=description,
        tags=fields.tags(split),
        categories=fields.categories(split),
        hidden=fields.hidden(split),
        headings=markdown.headings(split.prose),
        head=markdown.head(body),
        body_digest=sketch.digest(folded),
        body_chars=len(body),
        sketch=sketch.sketch(folded),
        diagnostics=tuple(noted),
    )
