"""What is known of references: their counts for `status`, and one section looked at closely for `show` and `why`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.engine import manifest
from pipeline.model import Keyed, Problem
from pipeline.tasks.references.rows import DocumentRow, SectionRow
from serve.errors import ExitCode, OperatorError

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from serve.contract import SnapshotManifest

STEPS = ("document", "section", "terms", "embed")
COLUMNS = ("found", "documents", "problem", "sections")


def counts(build: Build, held: SnapshotManifest | None) -> dict[str, dict[str, int]]:
    """Per source what the published index counts; found = documents + problem."""
    published = held.references.sources if held and held.references is not msgspec.UNSET else {}
    names = [source.name for source in build.references]
    return {name: {key: getattr(published[name], key) if name in published else 0 for key in COLUMNS} for name in names}


def stale(build: Build, held: SnapshotManifest) -> list[str]:
    """In what the published references are not what the configuration would have them be, in words."""
    published = held.references.sources if held.references is not msgspec.UNSET else {}
    names = [source.name for source in build.references]
    said = [f"source {name} is configured but not in the index" for name in names if name not in published]
    return said + [f"source {name} is in the index but no longer configured" for name in published if name not in names]


def problems(build: Build) -> list[Problem]:
    """What the last build could not index of the references."""
    return [row for source in build.references for row in manifest.previous(build.paths.problems(source.name), Problem)]


def is_of(build: Build, item_id: str) -> bool:
    """Whether an ID is one of a source of references."""
    return item_id.partition(":")[0] in {source.name for source in build.references}


def find(build: Build, item_id: str) -> tuple[DocumentRow, list[SectionRow]]:
    """A document and those of its rows that an ID means: one, or all of them for the document's own ID.

    Raises OperatorError with near IDs for one that nobody has.
    """
    name = item_id.partition(":")[0]
    rows = manifest.previous(build.paths.manifest("section", name), SectionRow)
    documents = {row.id: row for row in manifest.previous(build.paths.manifest("document", name), DocumentRow)}
    if item_id in documents:
        return documents[item_id], [row for row in rows if row.section.document == item_id]
    row = next((row for row in rows if row.id == item_id), None)
    if row is None or row.section.document not in documents:
        raise OperatorError(
            f"no section has the ID `{item_id}`", next_step=_suggestion(item_id, rows), code=ExitCode.USAGE
        )
    return documents[row.section.document], [row]


def _suggestion(item_id: str, rows: list[SectionRow]) -> str:
    tail = item_id.rpartition("#")[2].rpartition("/")[2].casefold()
    near = [row.id for row in rows if tail and tail in row.id.casefold()][:3]
    return f"did you mean {', '.join(near)}?" if near else "look for it with `retrieval references`"


def show(build: Build, item_id: str) -> dict[str, Any]:
    """All that the index knows of a section, or of a document."""
    document, rows = find(build, item_id)
    section = rows[0].section if len(rows) == 1 else None
    shown: dict[str, Any] = {
        "id": item_id,
        "kind": "references",
        "status": "indexed" if rows else "no text",
        "source": item_id.partition(":")[0],
        "path": document.file,
        "hash": f"blake3:{document.digest}",
        "bytes": document.bytes,
        "sections": [row.id for row in rows],
        "notes": list(rows[0].notes) if rows else [],
    }
    if section is not None:
        shown |= {
            "headings": list(section.headings),
            "title": section.title,
            "lines": f"{section.first}-{section.last}",
            "part": f"{section.part} of {section.parts}",
            "tokens": section.tokens,
        }
    return shown


def why(build: Build, item_id: str) -> dict[str, Any]:
    """What last changed a section or a document, in the fields that `why` has for skills."""
    document, rows = find(build, item_id)
    own = {change.step: change for change in build.lineage.of(item_id)}
    own |= {change.step: change for change in build.lineage.of(document.id) if change.step not in own}
    latest = max((change.at for change in own.values()), default=0.0)
    run = next((change.run for change in own.values() if change.at == latest), "")
    steps = [
        {
            "step": step,
            "computed": own[step].ran,
            "before": own[step].before,
            "after": own[step].after,
            "changed": own[step].before != own[step].after,
        }
        for step in STEPS
        if step in own and own[step].run == run
    ]
    return {
        **_empty(item_id, document, rows),
        "last_run": run,
        "last_change_at": latest or None,
        "input": {"digest": document.digest},
        "changed_input": _changed_input(steps),
        "steps": steps,
        "cut_off": _cut_off(steps),
        "keys": _keys(build, item_id),
    }


def _empty(item_id: str, document: DocumentRow, rows: list[SectionRow]) -> dict[str, Any]:
    """The fields of a skill's explanation that say nothing of a section."""
    lists: dict[str, Any] = {key: [] for key in ("categories", "duplicates", "native_in", "evidence")}
    single = rows[0].section if len(rows) == 1 else None
    return {
        **lists,
        "id": item_id,
        "name": " > ".join(single.headings) if single else document.path,
        "status": "indexed" if rows else "no text",
        "reason": "" if single else f"{len(rows)} sections",
        "state": "",
        "winner": "",
        "diagnostics": list(rows[0].notes) if rows else [],
        "path": f"{document.file}:{single.first}-{single.last}" if single else document.file,
        "next": "",
    }


def _changed_input(steps: list[dict[str, Any]]) -> str:
    document = next((row for row in steps if row["step"] == "document"), None)
    if not steps:
        return ""
    if document is None:
        return "not its file, but the configuration or the program"
    return "the file is new" if not document["before"] else "its file"


def _cut_off(steps: list[dict[str, Any]]) -> str:
    """Where the last change stopped."""
    reached = {row["step"] for row in steps}
    idle = [step for step in STEPS if step not in reached]
    return f"nothing to do in {', '.join(idle)}, whose inputs are as before" if steps and idle else ""


def _keys(build: Build, item_id: str) -> dict[str, str]:
    name = item_id.partition(":")[0]
    rows = [(step, row) for step in STEPS[2:] for row in manifest.previous(build.paths.manifest(step, name), Keyed)]
    return {step: row.key for step, row in rows if row.id == item_id}
