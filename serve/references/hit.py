"""One hit of an answer: the quoted text, and where it comes from, how fresh and how sure it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from serve.references import current
from serve.references.contract import Section, heading_path
from serve.references.current import File, Found

_KEPT = {current.SAME: 1.0, current.UNTOUCHED: 0.95, current.EDITED: 0.6}  # of the confidence
_FRESHNESS = {
    current.SAME: "fresh",
    current.UNTOUCHED: "stale",
    current.EDITED: "stale",
    current.MISSING: "stale",
    current.GONE: "unknown",
}
_RELIABILITY = {
    current.SAME: "the file is byte for byte what was indexed",
    current.UNTOUCHED: "the file has changed since it was indexed, this section has not",
    current.EDITED: "the section has changed since it was indexed; this is its text now",
    current.MISSING: "the file has changed, and the section is not in it any more",
    current.GONE: "nothing could be read; only what the index remembers is given",
}
_ASSUMED = {
    current.UNTOUCHED: "the file was changed after the index was built; the section was found again by its heading, and "
    "reads as it was indexed",
    current.EDITED: "the file was changed after the index was built; the section was found again by its heading, and was "
    "chosen by what it said before",
    current.MISSING: "the file was changed after the index was built, and no section of it has this heading any more; "
    "run `retrieval build`",
}


class Match(NamedTuple):
    """How well a section fits the query. score: of the ranking. likeness: 0 to 1. ranks: its place in each lane."""

    score: float
    likeness: float
    ranks: dict[str, int]


def heading(section: Section) -> str:
    """The path of headings on one line; the document's path where there is none."""
    return heading_path(section.title, section.headings) or section.path


def make(section: Section, file: File, found: Found, data: str, match: Match, revision: str) -> dict[str, Any]:
    """A hit as JSON. data: as much of the found text as the answer has room for. revision: of Git, "" for none."""
    lines = _lines(found, data)
    reference = f"{section.file}:{lines}" if lines else section.file
    read = found.state in _KEPT
    cut = len(data) < len(found.text)
    digest = section.digest if found.state == current.GONE else file.digest
    return {
        "retrieved": {
            "target": section.id,
            "source": f"file:{section.file}",
            "timestamp": current.moment(datetime.now(UTC)),
            "data": data,
            "format": "markdown",
            "complete": read and found.whole and not cut,
        },
        "citation": {
            "reference": reference,
            "version": f"git:{revision}" if revision else None,
            "hash": f"blake3:{digest}",
            "authority": _authority(found, revision),
        },
        "provenance": {
            "source_type": "file",
            "last_modified": file.modified or None,
            "freshness": _FRESHNESS[found.state],
            "reliability": _RELIABILITY[found.state],
        },
        "extraction": {
            "applied_filters": {"section": heading(section), "lines": lines or None, "part": _part(section)},
            "original_size": found.size if read else None,
            "returned_size": len(data),
            "truncated": cut,
        },
        "confidence": round(_KEPT.get(found.state, 0.0) * match.likeness, 3),
        "evidence_anchors": [reference] if lines else [],
        "assumptions": list(_assumptions(section, file, found, revision, cut=cut)),
        "section": _section(section, match),
    }


def failed(section: Section, what: str, match: Match) -> dict[str, Any]:
    """A hit that could not be made, with what the index knows of it."""
    return make(section, File(section, what), Found(current.GONE), "", match, "")


def _section(section: Section, match: Match) -> dict[str, Any]:
    return {
        "id": section.id,
        "source": section.source,
        "document": section.path,
        "heading": heading(section),
        "indexed_lines": f"{section.first}-{section.last}",
        "part": section.part,
        "parts": section.parts,
        "score": round(match.score, 6),
        "ranks": match.ranks,
    }


def _lines(found: Found, data: str) -> str:
    return f"{found.first}-{found.first + data.count(chr(10))}" if data else ""


def _part(section: Section) -> str | None:
    return f"{section.part} of {section.parts}" if section.parts > 1 else None


def _authority(found: Found, revision: str) -> str:
    if found.state not in _KEPT:
        return "low"
    return "high" if revision and found.state == current.SAME else "medium"


def _assumptions(section: Section, file: File, found: Found, revision: str, *, cut: bool) -> list[str]:
    said = []
    if found.state in _ASSUMED:
        said.append(_ASSUMED[found.state])
    if found.state == current.GONE:
        said.append(f"{file.fault}; run `retrieval build`")
        said.append("the hash is that of the file as it was indexed")
    if section.parts > 1 and found.state in _KEPT:
        said.append(f"the section is long: this is part {section.part} of {section.parts}; the lines around it go on")
    if "\ufffd" in found.text:
        said.append("the file is not all UTF-8: what could not be read is shown as \ufffd")
    if cut:
        said.append("the text was cut off to keep the answer within max_chars")
    if revision:
        said.append("the version is the commit that is checked out there; the file itself may differ from it")
    return said
