"""Verify: make everything again from the sources in a shadow, and compare it with what is published, byte by byte.

No cache is trusted: files are read and hashed anew, steps run without the memo. Only vectors are not computed again (that would take as
long as the first build): they are compared with the memo and with the store, which hold them independently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.admin import account, verify_references
from pipeline.engine import generation
from pipeline.engine.shadow import ShadowBuild, run_steps, shadow
from serve import contract
from serve.contract import Record
from serve.errors import ContractError, ExitCode, NoIndexError, OperatorError

if TYPE_CHECKING:
    from pipeline.engine.build import Build
    from pipeline.tasks.entries import Entry
    from serve.contract import Pointer
    from serve.snapshot import Snapshot

# The parts of a row beside its record, in the order of the published keys.
_PARTS = ("record", "descriptor", "terms", "text that is embedded")
_FIELDS = {"digest": "SKILL.md", "package_digest": "bundled files"}
_LIMIT = 1000


class Findings:
    """Disagreements and how much was compared."""

    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []
        self.checked: dict[str, int] = {}
        self.in_store = 0

    def add(self, part: str, what: str) -> None:
        """One disagreement. part: source, card, row, vector, reference or snapshot."""
        self.rows.append({"part": part, "what": what})

    def as_dict(self) -> dict[str, Any]:
        """What `verify --json` prints; at most 1,000 disagreements are listed, all are counted."""
        # An ordinary build trusts a row that bears the right key; only a store begun anew forgets what was done to its rows.
        remedy = "run `retrieval build --rebuild-store`" if self.in_store else "run `retrieval build`"
        return {
            "disagreements": self.rows[:_LIMIT],
            "count": len(self.rows),
            "checked": self.checked,
            "next": f"{remedy}, then verify again" if self.rows else "",
        }


def verify(build: Build) -> dict[str, Any]:
    """Compare sources, catalog, store and snapshot. Changes none of them, and takes no lock.

    Raises NoIndexError or ContractError without an index that this program can read, LockedError while another run writes,
    OperatorError when the folder of a source is away or a build came between.
    """
    begun = generation.current(build.paths.snapshots)
    if begun is None:
        raise _no_index(build)
    _check_folders(build)
    if not build.lock.held:
        account.wait_for_quiet(build)
        begun = generation.current(build.paths.snapshots)
    findings = Findings()
    snapshot = _published(build, findings)
    try:
        with shadow(build, clean=True) as clean:
            run_steps(clean)
            _compare(clean, snapshot, findings)
    finally:
        if snapshot is not None:
            snapshot.close()
    between = generation.current(build.paths.snapshots) != begun or (account.holder(build) and not build.lock.held)
    if findings.rows and between:
        raise OperatorError(
            "a build came between, so what was compared does not belong together",
            where=str(build.paths.data),
            next_step="verify again when it has ended",
            code=ExitCode.LOCKED,
        )
    return findings.as_dict()


def _check_folders(build: Build) -> None:
    """A build keeps the skills of a source whose folder is away; to verify them there must be something to read."""
    for source in (*build.sources, *build.references):
        if not source.path.is_dir():
            raise OperatorError(
                f"source {source.name} cannot be verified: the folder {source.path} is not there",
                where=source.where,
                next_step="create or mount it, correct the path, or set enabled = false",
            )


def _compare(clean: ShadowBuild, snapshot: Snapshot | None, findings: Findings) -> None:
    entries = clean.entries
    if snapshot is not None:
        _compare_sources(clean, entries, snapshot, findings)
    _compare_cards(clean, findings)
    if snapshot is not None:
        _compare_vectors(clean, entries, snapshot, findings)
        verify_references.compare(clean, snapshot, findings)
    _compare_store(clean, findings)


def _no_index(build: Build) -> OperatorError:
    if (build.paths.snapshots / contract.POINTER).exists():
        return ContractError(
            "the pointer to the published index cannot be read",
            where=str(build.paths.snapshots / contract.POINTER),
            next_step="run `retrieval build`",
        )
    return NoIndexError("there is no index yet", where=str(build.paths.snapshots), next_step="run `retrieval build`")


def _published(build: Build, findings: Findings) -> Snapshot | None:
    """The current snapshot, its files checked; None when it is too damaged to be opened, which is a finding."""
    from serve.snapshot import Live

    pointer: Pointer | None = generation.current(build.paths.snapshots)
    folder = build.paths.snapshots / (pointer.generation if pointer else "")
    held = generation.read_manifest(folder)
    damaged = generation.damaged(folder, held) if held else []
    for name in damaged:
        findings.add("snapshot", f"{name} is not as it was published")
    findings.checked["files"] = len(held.files) + 1 if held else 0
    try:
        snapshot = Live(build.paths.data).current()
        _ = snapshot.ids
    except (ContractError, msgspec.MsgspecError, ValueError, OSError) as error:
        if not damaged:
            raise
        findings.add("snapshot", f"the published index cannot be opened: {getattr(error, 'what', error)}")
        return None
    return snapshot


def _compare_sources(clean: ShadowBuild, entries: list[Entry], snapshot: Snapshot, findings: Findings) -> None:
    import numpy as np

    from pipeline.tasks import assembly, publish

    keys = assembly.keys_of(entries, assembly.terms_of(clean, entries))
    published = np.load(snapshot.folder / contract.KEYS, allow_pickle=False)
    before = len(findings.rows)
    for place, entry in enumerate(entries):
        row = snapshot.row_of(entry.id)
        if row is None:
            findings.add("source", f"{entry.id} is in its source but not in the index")
            continue
        differing = [
            name for part, name in enumerate(_PARTS[1:], 1) if (published[row, part] != keys[place, part]).any()
        ]
        differing = _record_fields(entry, snapshot, row) + differing
        if differing:
            findings.add("source", f"{entry.id} is not as it was indexed: {', '.join(differing)}")
    for skill in sorted(set(snapshot.ids) - {entry.id for entry in entries}):
        findings.add("source", f"{skill} is in the index but no longer in its source")
    if publish.counts(clean) != snapshot.manifest.counts and len(findings.rows) == before:
        findings.add(
            "source", "what the sources hold beside indexed skills (duplicates, reviews, problems) has changed"
        )
    findings.checked["skills"] = len(entries)


def _record_fields(entry: Entry, snapshot: Snapshot, row: int) -> list[str]:
    """In what the published record differs from the one that the source gives, in words."""
    wanted = entry.selected.record
    try:
        held = snapshot.record(row)
    except msgspec.MsgspecError:
        return ["its record cannot be read"]
    if wanted is None or held == wanted:
        return []
    fields = [name for name in Record.__struct_fields__ if getattr(held, name) != getattr(wanted, name)]
    follow = {"bytes", "files"} | ({"package_digest"} if "digest" in fields else set())
    if "package_digest" in fields:  # which sizes and counts merely follow
        fields = [name for name in fields if name not in follow]
    return [_FIELDS.get(name, name.replace("_", " ")) for name in fields]


def _compare_cards(clean: ShadowBuild, findings: Findings) -> None:
    from pipeline.engine import outputs
    from pipeline.tasks import card, hub

    root = clean.paths.catalog
    wanted: dict[str, str] = dict(hub.wanted(clean))
    for source in clean.sources:
        _owner, pages = card.wanted(clean, source.name)
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

    present = [(entry, row) for entry in entries if (row := snapshot.row_of(entry.id)) is not None]
    wanted = embed.vectors(clean, [(entry.source, entry.embed) for entry, _row in present])
    for (entry, row), vector in zip(present, wanted, strict=True):
        held = snapshot.vectors[row]
        # A lost vector that was embedded again in another batch may differ in its last bits; a changed byte of the file has
        # been found by its digest.
        if held.shape != vector.shape or not np.allclose(held, vector, atol=1e-5):
            findings.add("vector", f"{entry.id}: the published vector is not the computed one")
    findings.checked["vectors"] = len(present)


def _compare_store(clean: ShadowBuild, findings: Findings) -> None:
    """The store's rows against what the sources say."""
    from pipeline.tasks import store_rows, upsert

    entries = upsert.gather(clean)
    for part, what in store_rows.disagreements(clean, entries):
        findings.add(part, what)
        findings.in_store += 1
    findings.checked["rows"] = len(entries)
