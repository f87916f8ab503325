"""Upsert: bring the vector store to what the manifests say, and write the proof of it last."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.engine import files, manifest
from pipeline.model import Keyed
from pipeline.tasks import embed, store_rows, texts
from pipeline.tasks.entries import Entry
from serve.errors import UnreachableError

if TYPE_CHECKING:
    from pipeline.chroma import Rows, Store
    from pipeline.chroma.aside import Aside, Done
    from pipeline.engine.build import Build


MOST_ASIDE = 20_000  # rows that are handed over at once, in memory; more are written here, batch by batch


class Stamp(msgspec.Struct, frozen=True):
    """What we left behind: digest of the ledger, and the store's fingerprint right after we closed it."""

    ledger: str
    fingerprint: str | None


def settings(build: Build) -> list[str]:
    """Digest of the step's code, the embedder and the place of the store."""
    return [texts.code_digest("upsert"), embed.identity_key(build), repr(build.store_info)]


def run(build: Build) -> None:
    """Write the rows that are not held as they should be, drop those that nothing claims, then stamp.

    A change to an embedded store is written by another process while the rest of the build goes on, since readers of an
    embedded store do not use it; the end of the run waits for it.
    """
    from pipeline.chroma import plan

    entries = gather(build)
    wanted = store_rows.row_keys(entries)
    with build.report.timing("upsert") as count:
        held = {} if build.rebuild_store else _trusted(build)
        todo = plan(wanted, held or {})
        if build.dry:
            count.executed, count.removed = len(todo.put), len(todo.drop)
            return
        _stamp_path(build).unlink(missing_ok=True)
        writing = _Writing(build, entries, wanted, held)
        known = held is not None or not Path(build.chroma.path).exists()
        local = build.chroma.mode == "embedded" and not build.rebuild_store and os.name != "nt"
        if known and local and len(todo.put) <= MOST_ASIDE:
            writing.begin_aside(todo.put)
            build.later(writing.finish)
            return
        build.progress.begin("upsert", len(todo.put))
        writing.finish()


class _Writing:
    """Bringing the store to what is wanted, here or in another process, and keeping the account."""

    def __init__(
        self, build: Build, entries: Mapping[str, Entry], wanted: Mapping[str, str], held: Mapping[str, str] | None
    ) -> None:
        self.build = build
        self.entries = entries
        self.wanted = wanted
        self.held = held
        self.identity = embed.identity_key(build)
        self.stamp = files.key(*(f"{key} {value}" for key, value in sorted(wanted.items())))
        self.aside: Aside | None = None

    def begin_aside(self, ids: Sequence[str]) -> None:
        """Have another process write these rows. It holds the writer lock too: should this one be killed, nobody else writes yet."""
        from pipeline.chroma.aside import Aside, Order

        ready = self._load(ids)
        order = Order(
            path=self.build.chroma.path,
            namespace=self.build.chroma.namespace,
            embedder=self.identity,
            wanted=dict(self.wanted),
            held=dict(self.held or {}),
            stamp=self.stamp,
            ids=list(ready.ids),
            vectors=ready.vectors.tobytes(),
            metadatas=list(ready.metadatas),
            documents=list(ready.documents),
        )
        self.aside = Aside(order, self.build.lock.descriptors)

    def finish(self) -> None:
        """See the store brought to what is wanted; then ledger and stamp, counts and lineage."""
        done = self.aside.result() if self.aside else None
        if done is None:
            done = self._work_or_begin_anew()
        build = self.build
        build.report.notes += done.notices
        build.report.notes += [f"removed collection {name} of an earlier embedder" for name in done.retired]
        count = build.report.step("upsert")
        count.executed += len(done.put)
        count.written += len(done.put)
        count.removed += len(done.drop)
        count.reused += len(self.wanted) - len(done.put)
        _leave(build, self.wanted)
        ran = set(done.put)
        build.record("upsert", dict.fromkeys(done.drop, "held"), {key: self.wanted[key] for key in ran}, ran)

    def _work_or_begin_anew(self) -> Done:
        """As `_work`; an embedded store that Chroma cannot cope with, for whatever reason, is moved aside and written again."""
        from pipeline.chroma import StoreError
        from pipeline.chroma.embedded import EmbeddedBackend

        try:
            return self._work()
        except StoreError as error:
            if self.build.chroma.mode != "embedded":
                raise
            aside = EmbeddedBackend(self.build.chroma).set_aside()
            self.build.report.notes.append(
                f"the vector store was begun anew: {error.what}; its files are now in {aside}"
            )
            self.held = {}
            return self._work()

    def _work(self) -> Done:
        """Open the store here, bring it to what is wanted, and close it."""
        from pipeline.chroma import StoreDamagedError, open_store, reconcile
        from pipeline.chroma.aside import Done

        # What another process could not finish may have been begun: the store itself is asked what it holds.
        held = None if self.aside else self.held
        with open_store(self.build.chroma, self.identity) as store:
            if self.build.rebuild_store:
                store.start_over(StoreDamagedError("a rebuild was asked for", where=store.where))
                held = {}
            elif held is None and store.count():
                held = self._sound(store)
            outcome = reconcile(store, self.wanted, self._load, self.stamp, held=held, advance=self._advance)
            return Done(outcome.plan.put, outcome.plan.drop, outcome.retired, list(store.notices))

    def _sound(self, store: Store) -> dict[str, str] | None:
        """What a store that somebody else touched holds as it should: rows are compared whole. None: it is damaged."""
        from pipeline.chroma import StoreDamagedError

        try:
            store.check()
            held = store.held()
            both = sorted(self.wanted.keys() & held.keys())
            differing = {
                skill for _part, skill in store_rows.differing(self.build, self.entries, self.wanted, both, store)
            }
        except StoreDamagedError:
            return None  # reconciling finds the same, and begins the store anew
        return {skill: key for skill, key in held.items() if skill not in differing}

    def _load(self, ids: Sequence[str]) -> Rows:
        return store_rows.rows(self.build, [self.entries[key] for key in ids], self.wanted)

    def _advance(self, done: int) -> None:
        self.build.progress.advance("upsert", done)


def intact(build: Build) -> bool:
    """Whether nobody has touched the store since this build wrote it. Raises UnreachableError when a server is down."""
    return not build.rebuild_store and _trusted(build) is not None


def gather(build: Build) -> dict[str, Entry]:
    """All indexed skills by ID."""
    return {entry.id: entry for entry in build.entries}


def describe(build: Build) -> str:
    """The store's state in a few words, for `status`; opens nothing of Chroma."""
    config = build.chroma
    try:
        held = _trusted(build)
    except UnreachableError as error:
        return f"{config.mode}: {error.what} at {error.where}"
    if held is None:
        return f"{config.mode} at {config.where}: not as the last build left it, or never written; the next build puts it right"
    return f"{config.mode} at {config.where}: {len(held)} rows"


def _trusted(build: Build) -> dict[str, str] | None:
    """What the store holds by our own ledger, if nobody touched either since we wrote them."""
    from pipeline.chroma import fingerprint

    try:
        stamp = msgspec.json.decode(_stamp_path(build).read_bytes(), type=Stamp)
        if stamp.fingerprint is None or build.digests.of(_ledger_path(build)) != stamp.ledger:
            return None
    except (OSError, msgspec.MsgspecError):
        return None
    if fingerprint(build.chroma, embed.identity_key(build)) != stamp.fingerprint:
        return None
    return {row.id: row.key for row in manifest.previous(_ledger_path(build), Keyed)}


def _leave(build: Build, wanted: Mapping[str, str]) -> None:
    """Write ledger and stamp, after the store was closed."""
    from pipeline.chroma import fingerprint

    manifest.store(_ledger_path(build), [Keyed(id=key, key=value, digest="") for key, value in wanted.items()])
    mark = fingerprint(build.chroma, embed.identity_key(build))
    stamp = Stamp(files.digest_file(_ledger_path(build)), mark)
    files.write(_stamp_path(build), msgspec.json.encode(stamp))


def _ledger_path(build: Build) -> Path:
    return build.paths.build / "upsert.jsonl"


def _stamp_path(build: Build) -> Path:
    return build.paths.build / "upsert.stamp"
