"""The answer of `retrieve_skill` as the MCP server and the command line give it: plain data, every key always there."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

import msgspec

from serve.bundle import Bundle
from serve.contract import Record
from serve.search import Answer
from serve.selection import Candidate, Choice
from serve.shelf import candidate
from serve.snapshot import Snapshot
from serve.text_file import TextFile

OFFERED = 8  # skills listed for the caller to choose from
DESCRIBED = 300  # characters of a listed description


class Findings(NamedTuple):
    """How a query was decided. record: the chosen skill. ranking: None when the query named its skill. milliseconds: of the choice."""

    choice: Choice
    record: Record | None
    ranking: Answer | None
    snapshot: Snapshot
    notes: tuple[str, ...]
    milliseconds: float = 0.0

    def failed(self, reason: str) -> Findings:
        """The same with nothing chosen, because of what came up after the choice; the others are still on offer."""
        choice, record = self.choice, self.record
        ranked = [candidate(row) for row in self.ranking.rows] if self.ranking else []
        others = tuple(item for item in ranked if record is None or item.id != record.id)
        return self._replace(
            record=None,
            choice=msgspec.structs.replace(choice, id="", reason=reason, failed=True, offered=others),
        )


def found_answer(
    findings: Findings,
    record: Record,
    file: TextFile,
    files: Bundle,
    projection: dict[str, Any],
    reload: str,
    answer_chars: int,
) -> dict[str, Any]:
    """The answer that holds a skill."""
    notes = [*findings.notes, *file.notes]
    if not file.digest.startswith(record.digest):  # the index keeps the first half of a digest
        notes.append("the file was changed after the index was built; this is the file as it is now")
    truncated = len(file.text) > answer_chars
    if truncated:
        notes.append(f"the text is cut after {answer_chars} of {len(file.text)} characters; the whole is {record.path}")
    if files.more:
        notes.append(f"more than {len(files.files)} files lie beside it; look into {os.path.dirname(record.path)}")
    return {
        "found": True,
        "id": record.id,
        "name": record.name,
        "source": record.source,
        "state": record.state,
        "text": file.text[:answer_chars],
        "truncated": truncated,
        "base_directory": os.path.dirname(record.path),
        "skill_path": record.path,
        "digest": f"blake3:{file.digest}",
        "files": files.files,
        "selection": _selection(findings),
        "projection": projection,
        "reload": reload if projection["state"] in {"copied", "current", "refreshed"} else "",
        "runner_up": _runner_up(findings, record.id),
        "candidates": [],
        **_provenance(findings),
        "notes": notes,
    }


def none_answer(findings: Findings) -> dict[str, Any]:
    """The answer that holds none: nothing fits, no decision was made, or the caller is to choose."""
    choice = findings.choice
    return {
        "found": False,
        "id": "",
        "name": "",
        "source": "",
        "state": "",
        "text": "",
        "truncated": False,
        "base_directory": "",
        "skill_path": "",
        "digest": "",
        "files": [],
        "selection": _selection(findings),
        "projection": not_projected("none", "nothing was selected"),
        "reload": "",
        "runner_up": None,
        "candidates": [_listed(item) for item in choice.offered[:OFFERED]],
        **_provenance(findings),
        "notes": list(findings.notes),
    }


def not_projected(state: str, reason: str) -> dict[str, Any]:
    """What an answer says of the lane when nothing was put there."""
    return {"state": state, "name": "", "path": "", "files": 0, "skipped": [], "reason": reason}


def _selection(findings: Findings) -> dict[str, Any]:
    choice = findings.choice
    return {
        "selector": choice.selector,
        "reason": choice.reason,
        "failed": choice.failed,
        "tool_calls": choice.tool_calls,
        "milliseconds": findings.milliseconds,
        "considered": list(choice.considered),
    }


def _runner_up(findings: Findings, chosen: str) -> dict[str, Any] | None:
    """The best-ranked skill beside the chosen one. margin: how far it lies behind; negative when it ranks before it."""
    if findings.ranking is None:
        return None
    ranked = [candidate(row) for row in findings.ranking.rows]
    other = next((item for item in ranked if item.id != chosen), None)
    if other is None:
        return None
    score = next((item.score for item in ranked if item.id == chosen), None)
    margin = None if score is None else round(score - other.score, 6)
    return {"id": other.id, "name": other.name, "margin": margin}


def _listed(item: Candidate) -> dict[str, Any]:
    return {
        "id": item.id,
        "name": item.name,
        "description": item.description[:DESCRIBED],
        "score": item.score,
        "state": item.state,
        "categories": list(item.categories),
    }


def _provenance(findings: Findings) -> dict[str, Any]:
    ranking, snapshot = findings.ranking, findings.snapshot
    return {
        "lanes": {} if ranking is None else {name: lane._asdict() for name, lane in ranking.lanes.items()},
        "index": {
            "generation": snapshot.generation,
            "age_seconds": round(max(0.0, time.time() - snapshot.published_at), 1),
            "skills": len(snapshot),
        },
    }
