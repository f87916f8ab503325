"""Sees that something changed: by the system's events where they can be had, by looking again and again where not."""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from watchfiles import Change
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from pipeline.watch import alarm
from pipeline.watch.mounts import remote
from pipeline.watch.poller import Poller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.watch.alarm import Alarm
    from pipeline.watch.places import Places

STEP_MS = 20  # so long must nothing more happen for a batch to be complete
GATHER_MS = 1_600  # a batch ends then at the latest
SLEEP = 5.0  # seconds; should a signal ever be missed, it is found then
# Folders around a source or a configuration may be busy with other things: seconds for which they cannot wake after they did for
# nothing. What decides is then found a little later.
NOISE = 2.0
BLIND_STEP_MS = 200  # where no signal tells of events, they are looked for this often
LARGE = 1_000  # events of a batch from which on the system may have dropped some
_LIMITS = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE})


class Hints(NamedTuple):
    """What seems to have changed. sources: by name. look_again: configuration or folders may be others now.

    doubtful: events may have been lost, so that all sources are suspect; renew: and later ones too, unless the folders are
    watched anew. latest: a path to show. events: how many.
    """

    sources: frozenset[str] = frozenset()
    look_again: bool = False
    doubtful: bool = False
    renew: bool = False
    latest: str = ""
    events: int = 0

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.sources) or self.look_again or self.doubtful or self.renew


class Eyes:
    """Watches places until they are closed. backend: in words. notes: what a person should know about it.

    Events are kept from when this is made: a scan that starts afterwards misses nothing.
    """

    def __init__(self, places: Places, wake: Alarm, *, polling: bool, interval: float) -> None:
        self.places = places
        self.notes: list[str] = []
        self._wake = wake
        self.broken = False
        kinds = {root.source: remote(root.real) for root in places.roots}
        self._deep: RustNotify | None = None
        self._flat: RustNotify | None = None
        self._deep_at: list[int] = []  # descriptors that can wake
        self._flat_at: list[int] = []
        self._muted = 0.0
        native = sorted({root.path for root in places.roots if root.identity and not kinds[root.source]})
        told = not polling and self._begin(native, places.anchors)
        polled = [root for root in places.roots if not told or kinds[root.source]]
        self._poller = Poller(polled, places, interval, decisions=not told)
        self.backend = self._described(polling, {root.source: kinds[root.source] for root in polled})

    def _begin(self, native: Sequence[str], anchors: Sequence[str]) -> bool:
        """Have the system tell of events; where it cannot tell of all, of none. Returns whether it does."""
        before = alarm.descriptors()
        try:
            self._deep = self._notify(native, recursive=True)
            self._deep_at = sorted(alarm.descriptors() - before)
            self._flat = self._notify(anchors, recursive=False)
            self._flat_at = sorted(alarm.descriptors() - before - set(self._deep_at))
        except WatchfilesRustInternalError as error:
            self._give_up(f"the system's events cannot be had ({error})")
        except OSError as error:
            if "limit" in str(error) or error.errno in _LIMITS:
                self._give_up("the system allows too few watches (fs.inotify.max_user_watches)")
            else:
                self.broken = True  # a folder went away meanwhile: looked at again at once
        return self._flat is not None

    def _notify(self, paths: Sequence[str], *, recursive: bool) -> RustNotify:
        try:
            return RustNotify(list(paths), False, False, 0, recursive, False)
        except PermissionError:
            # With leave to pass over what cannot be read, the library passes over limits too. Those are met again by the
            # folders that are watched after these.
            return RustNotify(list(paths), False, False, 0, recursive, True)

    def _give_up(self, why: str) -> None:
        self.close()
        self._deep = self._flat = None
        self._deep_at, self._flat_at = [], []
        self.notes.append(f"{why}, so folders are looked at again and again instead")

    def _described(self, polling: bool, polled: dict[str, str]) -> str:
        if self._deep is None:
            why = "as asked for" if polling else "no events can be had"
            return f"polling every {self._poller.interval:g} s ({why})"
        for source, kind in polled.items():
            self.notes.append(f"source {source} lies on {kind}, where events cannot be relied on: it is polled")
        return "events" + (f", and polling every {self._poller.interval:g} s for {len(polled)}" if polled else "")

    def wait(self, seconds: float) -> Hints:
        """What has changed since the last call; waits for it at most some seconds, and not beyond a stop."""
        deadline = time.monotonic() + seconds
        signalled = False
        while True:
            now = time.monotonic()
            muted = now < self._muted
            with alarm.armed(self._deep_at if muted else self._deep_at + self._flat_at):
                hints = self.look()
                left = deadline - time.monotonic()
                if hints or left <= 0 or self._wake.stop:
                    return hints
                if signalled and not muted:
                    self._muted = now + NOISE
                pause = SLEEP if self._deep is None or self._deep_at else BLIND_STEP_MS / 1000
                pause = NOISE if muted else pause
                signalled = self._wake.sleep(min(left, self._poller.until(), pause))

    def look(self) -> Hints:
        """What has changed since the last call, without waiting."""
        if self.broken:
            return Hints(look_again=True, doubtful=True, renew=True)
        seen = self._events()
        return _joined(seen, *self._polled()) if self._poller.until() <= 0 else seen

    @property
    def settled(self) -> bool:
        """Whether no polled folder has to be looked at once more because it changed a moment ago."""
        return self._poller.settled

    def close(self) -> None:
        """Watch no more."""
        for notify in (self._deep, self._flat):
            if notify is not None:
                notify.close()

    def _polled(self) -> tuple[Hints, ...]:
        sources, decisions = self._poller.poll()
        if not sources and not decisions:
            return ()
        return (Hints(frozenset(sources), look_again=decisions, latest=", ".join(sorted(sources)), events=1),)

    def _events(self) -> Hints:
        try:
            below = self._deep.watch(GATHER_MS, STEP_MS, STEP_MS, None) if self._deep is not None else "timeout"
            beside = self._flat.watch(GATHER_MS, 1, 1, None) if self._flat is not None else "timeout"
        except (OSError, RuntimeError):  # the library's own error is a RuntimeError
            self.broken = True
            return Hints(look_again=True, doubtful=True, renew=True)
        found = Hints()
        if not isinstance(below, str):
            found = self._below(below)
        if not isinstance(beside, str):
            decisive = sorted(path for _kind, path in beside if self.places.decides(path))
            if decisive:
                found = _joined(found, Hints(look_again=True, latest=decisive[-1], events=len(decisive)))
        return found

    def _below(self, changes: set[tuple[int, str]]) -> Hints:
        """What events below the roots mean."""
        paths = self.places.sources_of({path for _kind, path in changes})
        if not paths:
            return Hints()
        many = len(changes) >= LARGE
        nested = many or any(kind == Change.added and _holds_folders(path) for kind, path in changes)
        roots = {root.path for root in self.places.roots}
        sources = frozenset(name for names in paths.values() for name in names)
        return Hints(sources, not roots.isdisjoint(paths), many, nested, max(paths), len(paths))


def _holds_folders(path: str) -> bool:
    """Whether a path is a folder with folders in it: some of those may have come before they could be watched."""
    try:
        with os.scandir(path) as entries:
            return any(entry.is_dir() for entry in entries)
    except OSError:
        return False  # no folder, or gone again


def _joined(*parts: Hints) -> Hints:
    return Hints(
        frozenset().union(*(part.sources for part in parts)),
        any(part.look_again for part in parts),
        any(part.doubtful for part in parts),
        any(part.renew for part in parts),
        next((part.latest for part in reversed(parts) if part.latest), ""),
        sum(part.events for part in parts),
    )
