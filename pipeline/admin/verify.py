"""Verify: make everything again from the sources in a shadow, and compare it with what is published, byte by byte.

No cache is trusted: files are read and hashed anew, steps run without the memo. Only vectors are not computed again (that would take as
long as the first build): they are compared with the memo and with the store, which hold them independently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.engine import generation
from pipeline.engine.shadow import ShadowBuild, run_steps, shadow

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from pipeline.tasks.assembly import Entry
    from serve.snapshot import Snapshot

_PARTS = ("record", "descriptor", "terms", "text that is embedded")
_LIMIT = 1000


class Findings:
    """Disagreements and how much was compared."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []
        self.checked: dict[str, int] = {}

    def add(self, part: str, what: str) -> None:
        """One disagreement. part: source, card, row, vector or snapshot."""
        self.rows.append({"part": part, "what": what})

    def as_dict(self) -> dict[str, Any]:
        """What `verify --json` prints; at most 1,000 disagreements are listed, all are counted."""
        return {"disagreements": self.rows[:_LIMIT], "count": len(self.rows), "checked": self.checked}


def verify(build: Build) -> dict[str, Any]:
    """Compare sources, catalog, store and snapshot. Writes nothing; raises NoIndexError or ContractError without an index."""
    from serve.snapshot import Live

    findings = Findings()
    root = build.paths.snapshots
    pointer = generation.current(root)
    held = generation.read_manifest(root / pointer.generation) if pointer else None
    if pointer and held:
        for name in generation.damaged(root / pointer.generation, held):
            findings.add("snapshot", f"{name} is not as it was published")
        findings.checked["files"] = len(held.files) + 1
    with shadow(build, clean=True) as clean:
        run_steps(clean)
        entries = _compare_sources(clean, Live(build.paths.data).current(), findings)
        _compare_cards(clean, findings)
        _compare_vectors(clean, entries, Live(build.paths.data).current(), findings)
        _compare_store(clean, findings)
    return findings.as_dict()


def _compare_sources(clean: ShadowBuild, snapshot: Snapshot, findings: Findings) -> list[Entry]:
    import numpy as np

    from pipeline.tasks import assembly, publish
    from serve import contract

    entries = assembly.gather(clean)
    keys = assembly.keys_of(entries)
    published = np.load(snapshot.folder / contract.KEYS, allow_pickle=False)
    rows = {skill: row for row, skill in enumerate(snapshot.ids)}
    wanted = {entry.id for entry in entries}
    for place, entry in enumerate(entries):
        if entry.id not in rows:
            findings.add("source", f"{entry.id} is in its source but not in the index")
            continue
        row = rows[entry.id]
        differing = [name for part, name in enumerate(_PARTS) if (published[row, part] != keys[place, part]).any()]
        if differing:
            findings.add("source", f"{entry.id} has changed since it was indexed ({', '.join(differing)})")
    for skill in sorted(rows.keys() - wanted):
        findings.add("source", f"{skill} is in the index but no longer in its source")
    if publish.counts(clean) != snapshot.manifest.counts:
        findings.add("source", "the counts of the published index are not those of the sources")
    _compare_records(entries, snapshot, findings)
    findings.checked["skills"] = len(entries)
    return entries


def _compare_records(entries: list[Entry], snapshot: Snapshot, findings: Findings) -> None:
    """The record in the snapshot against the record from the source: names the skill when the file was tampered with."""
    for entry in entries:
        row = snapshot.row_of(entry.id)
        if row is not None and entry.selected.record is not None:
            if snapshot.record(row).digest != entry.selected.record.digest:
                findings.add("source", f"{entry.id}: the SKILL.md is not the one that was indexed")


def _compare_cards(clean: ShadowBuild, findings: Findings) -> None:
    from pipeline.engine import outputs
    from pipeline.tasks import card, hub

    root = clean.paths.catalog
    wanted: dict[str, str] = dict(hub.wanted(clean))
    for source in clean.sources:
        owner, pages = card.wanted(clean, source.name)
        wanted.update({path: page.make() for path, page in pages.items()})
    for path, text in wanted.items():
        try:
            held = (root / path).read_bytes()
        except OSError:
            findings.add("card", f"{path} is missing from the catalog")
            continue
        if held != text.encode("utf-8"):
            findings.add("card", f"{path} is not as the build wrote it")
    for path in outputs.unknown_pages(root, set(wanted)):
        findings.add("card", f"{path} is in the catalog, but no build made it")
    findings.checked["cards"] = len(wanted)


def _compare_vectors(clean: ShadowBuild, entries: list[Entry], snapshot: Snapshot, findings: Findings) -> None:
    """Each vector of the snapshot against the memo's; what the memo has lost is embedded again."""
    import numpy as np

    from pipeline.tasks import embed

    present = [entry for entry in entries if snapshot.row_of(entry.id) is not None]
    wanted = embed.vectors(clean, [(entry.source, entry.embed) for entry in present])
    for entry, vector in zip(present, wanted, strict=True):
        row = snapshot.row_of(entry.id)
        if not np.array_equal(snapshot.vectors[row], vector):
            findings.add("vector", f"{entry.id}: the published vector is not the computed one")
    findings.checked["vectors"] = len(present)


def _compare_store(clean: ShadowBuild, findings: Findings) -> None:
    """The store's rows against what the sources say."""
    from pipeline.tasks import upsert

    entries = upsert.gather(clean)
    for part, what in upsert.disagreements(clean, entries):
        findings.add(part, what)
    findings.checked["rows"] = len(entries)
