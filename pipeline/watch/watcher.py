"""The watcher: sees hints, waits for the right moment, builds what they concern, and tells how it stands."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.errors import ConfigError, OperatorError
from pipeline.settings import load_settings
from pipeline.watch import state as states
from pipeline.watch.alarm import Alarm
from pipeline.watch.election import confirm, elected, holds
from pipeline.watch.eyes import Eyes, Hints
from pipeline.watch.pending import Pending
from pipeline.watch.places import Places, survey
from pipeline.watch.resident import NOTHING, Resident, StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.engine.build import Build
    from pipeline.engine.lock import WriterLock
    from pipeline.settings import Settings
    from pipeline.watch.options import Options

SETTLING = 5  # times that the folders are looked at anew while they change under the look
_REST = 600.0  # seconds without anything to do


class Voice(NamedTuple):
    """How a watcher speaks. say: a line. complain: an error. explain: what is told of an exception. account: of a build."""

    say: Callable[[str], None]
    complain: Callable[[OperatorError], None]
    explain: Callable[[BaseException], OperatorError]
    account: Callable[[Build], dict[str, Any]]


def watch(options: Options, voice: Voice) -> None:
    """Follow the files until SIGTERM or SIGINT; what was seen by then is built first.

    Raises ConfigError for a configuration that cannot be read at the start, OperatorError when another watcher runs.
    """
    with Alarm() as wake:
        data = load_settings(options.config or None).data_dir
        if options.standby:
            voice.say("standing by")
        lock = elected(data, wake, standby=options.standby)
        if lock is None:
            return
        try:
            Watcher(options, voice, wake, lock).run()
        finally:
            lock.release()


class Watcher:
    """The elected one. Everything happens in turn in the main thread; events are kept by the system meanwhile."""

    def __init__(self, options: Options, voice: Voice, wake: Alarm, lock: WriterLock) -> None:
        self.options = options
        self.lock = lock
        self.voice = voice
        self.wake = wake
        self.settings: Settings = load_settings(options.config or None)
        self.places: Places = survey(self.settings, options.config)
        self.pending = Pending(options.every)
        self.resident = Resident(voice.account, self._waiting)
        self.data = self.settings.data_dir
        pid = os.getpid()
        self.state = states.State(pid, states.birth(pid), time.time(), str(self.settings.config_file or ""))
        self._mute = False
        self._tell()
        self.eyes = self._open_eyes()

    def run(self) -> None:
        """Watch until a stop is asked for."""
        try:
            self._announce()
            while not self.wake.stop:
                self._turn()
            self._last_turn()
        except StoppedError:
            self.voice.say("stopped while another run was writing; the next start looks at everything")
        finally:
            self.eyes.close()
            self.resident.close()
            if holds(self.lock):
                self._tell(now=states.STOPPED)

    def _turn(self) -> None:
        """Wait for the next thing to do, and do it."""
        hints = self.eyes.wait(min(self.pending.until(), _REST))
        if hints:
            self._note(hints)
        elif self.pending.until() > _REST:
            self.resident.rest()
        self.pending.hold(self.places.locks)
        if not self.wake.stop and self.pending.ripen():
            self._build()

    def _last_turn(self) -> None:
        """A stop was asked for: build what was seen until now, unless it is known not to work."""
        hints = self.eyes.look()
        if hints:
            self._note(hints)
        if self.pending and self.state.builds and self.state.problem is None:
            self._build()

    def _note(self, hints: Hints) -> None:
        self.pending.hint(hints)
        self.state.events += hints.events
        self.state.last_event = states.Event(time.time(), hints.latest, hints.events)
        self._tell()

    def _build(self) -> None:
        begun = time.monotonic()
        try:
            if self.pending.look_again:
                self._look_again()
            only = frozenset() if self.pending.everything else frozenset(self.pending.sources) or NOTHING
            self._tell(now="building")
            account = self.resident.build(self.settings, only)
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the index stays as it was and files are followed further
            self._failed(self.voice.explain(error))
            return
        self.pending.done()
        self.state.problem = None
        self.state.builds += 1
        sources = sorted(only - NOTHING)
        seconds = round(time.monotonic() - begun, 3)
        self.state.last_build = states.Built(time.time(), seconds, sources, account["generation"], account["published"])
        self._count(account["steps"])
        if account["published"]:
            total = account["totals"]["indexed"]
            self.voice.say(f"published {account['generation'][:8]} in {seconds:.2f} s: {total} indexed")
        self._tell(now="watching")

    def _count(self, steps: dict[str, dict[str, int]]) -> None:
        for step, row in steps.items():
            did = [row[key] for key in ("executed", "written", "removed")]
            if any(did):
                known = self.state.steps.setdefault(step, [0, 0, 0])
                self.state.steps[step] = [old + new for old, new in zip(known, did, strict=True)]

    def _failed(self, error: OperatorError) -> None:
        seconds = self.pending.failed()
        self.voice.complain(error)
        self.voice.say(f"the index stays as it was; next attempt in {seconds:.0f} s, or when something changes")
        self.state.problem = error.as_dict()
        self._tell(now="watching")

    def _waiting(self, holder: dict[str, object]) -> bool:
        """Another run writes. Returns whether to go on waiting."""
        if self.state.now != "waiting":
            self.voice.say(f"waiting for another run: process {holder.get('pid') or 'unknown'}")
            self._tell(now="waiting")
        return not self.wake.stop

    def _look_again(self) -> None:
        """Read the configuration again, and watch what it says now. One that cannot be read leaves the last one in force."""
        problem, settings = None, self.settings
        try:
            settings = load_settings(self.options.config or None)
            if settings.data_dir != self.data:
                raise _moved(settings, self.data)
        except ConfigError as error:
            problem, settings = error, self.settings
        told = problem.as_dict() if problem else None
        if problem and told != self.state.config_problem:
            self.voice.complain(problem)
            self.voice.say("the last good configuration stays in force")
        self.state.config_problem = told
        self.pending.everything |= settings != self.settings
        self.settings = settings
        places = survey(settings, self.options.config, self.places)
        self.pending.sources |= {root.source for root in set(places.roots) ^ set(self.places.roots)}
        if places != self.places or self.pending.renew:
            self.places = places
            before, self.eyes = self.eyes, self._open_eyes()
            missed = before.look()
            before.close()
            self.pending.sources |= missed.sources
            self._announce()

    def _open_eyes(self) -> Eyes:
        """Watch the places. Should they change while that is begun, they are looked at anew, so that nothing falls between."""
        options = self.options
        eyes = Eyes(self.places, self.wake, polling=options.polling, interval=options.interval)
        for _attempt in range(SETTLING):
            places = survey(self.settings, options.config, self.places)
            if places == self.places and not eyes.broken:
                break
            self.pending.sources |= {root.source for root in set(places.roots) ^ set(self.places.roots)}
            self.places = places
            eyes.close()
            eyes = Eyes(places, self.wake, polling=options.polling, interval=options.interval)
        return eyes

    def _announce(self) -> None:
        before = (self.state.backend, self.state.notes)
        self.state.backend, self.state.notes = self.eyes.backend, self.eyes.notes
        self.state.sources = len(self.places.roots)
        if before != (self.state.backend, self.state.notes):
            self.voice.say(f"watching {self.state.sources} sources: {self.state.backend}")
            for note in self.state.notes:
                self.voice.say(f"note: {note}")
        self._tell()

    def _tell(self, now: str = "") -> None:
        """Keep the state. A disk that takes nothing more is said once, and does not end the watcher."""
        state = self.state
        confirm(self.lock)
        state.now = now or state.now
        state.settled = state.now == "watching" and self.pending.settled and self.eyes.settled
        everything = self.pending.everything and state.now != states.STOPPED
        state.pending = sorted({root.source for root in self.places.roots} if everything else self.pending.sources)
        try:
            states.write(self.data, state)
        except OSError as error:
            if not self._mute:
                self.voice.complain(self.voice.explain(error))
            self._mute = True
        else:
            self._mute = False


def _moved(settings: Settings, data: os.PathLike[str]) -> ConfigError:
    return ConfigError(
        f"the data directory is now {settings.data_dir}; this watcher keeps to {data}",
        where=settings.origins.get("RETRIEVAL_HOME", ""),
        next_step="start the watcher again",
    )
