"""The references' part of `verify`: what is published of them against what their files say now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pipeline.engine import manifest
from serve.references import contract

if TYPE_CHECKING:
    from pipeline.admin.verify import Findings
    from pipeline.engine.shadow import ShadowBuild
    from pipeline.tasks.references.parts import Rows
    from serve.snapshot import Snapshot


def compare(clean: ShadowBuild, snapshot: Snapshot, findings: Findings) -> None:
    """Sections, documents, counts and vectors."""
    published = snapshot.manifest.references
    if not clean.references:
        if published is not msgspec.UNSET:
            findings.add("reference", "references are in the index, but no source of references is configured")
        return
    if published is msgspec.UNSET:
        findings.add("reference", "sources of references are configured, but none is in the index")
        return
    from pipeline.tasks.references import parts

    rows = parts.gather(clean)
    _compare_lines(
        snapshot, contract.SECTIONS, [manifest.encode(row.section) for row in rows.sections], "section", findings
    )
    _compare_lines(snapshot, contract.DOCUMENTS, [manifest.encode(row) for row in rows.documents], "document", findings)
    if dict(parts.counts(clean, rows)) != published.sources:
        findings.add("reference", "what the sources of references hold (documents, problems) has changed")
    _compare_vectors(clean, rows, snapshot, findings)
    findings.checked["documents"] = len(rows.documents)
    findings.checked["sections"] = len(rows.sections)


class _OnlyId(msgspec.Struct):
    id: str


def _compare_lines(snapshot: Snapshot, name: str, wanted: list[bytes], what: str, findings: Findings) -> None:
    decoder = msgspec.json.Decoder(_OnlyId)
    try:
        lines = (snapshot.folder / name).read_bytes().splitlines()
        held = {decoder.decode(line).id: line for line in lines}
    except (OSError, msgspec.MsgspecError):
        findings.add("reference", f"{name} cannot be read")
        return
    expected = {decoder.decode(line).id: line for line in wanted}
    for item in sorted(held.keys() | expected.keys()):
        if item not in held:
            findings.add("reference", f"{what} {item} is in its source but not in the index")
        elif item not in expected:
            findings.add("reference", f"{what} {item} is in the index but no longer in its source")
        elif held[item] != expected[item]:
            findings.add("reference", f"{what} {item} is not as it was indexed")


def _compare_vectors(clean: ShadowBuild, rows: Rows, snapshot: Snapshot, findings: Findings) -> None:
    """Each published vector against the memo's; what the memo has lost is embedded again."""
    import numpy as np

    from pipeline.tasks.references import embed

    held = np.load(snapshot.folder / contract.VECTORS, allow_pickle=False)
    wanted = embed.vectors(clean, rows.sections, rows.embedded)
    if held.shape != wanted.shape:
        findings.add("reference", "the published vectors are not those of the sections")
        return
    for place in np.flatnonzero(~np.isclose(held, wanted, atol=1e-5).all(axis=1)).tolist():
        findings.add("vector", f"{rows.sections[place].id}: the published vector is not the computed one")
