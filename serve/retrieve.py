"""`retrieve_skill` from question to answer: rank, let a selector choose, return the SKILL.md, project its package.

The command line and the MCP server both call `Retriever.skill`, so that a person sees what an agent sees.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock
from typing import Any

from serve import bundle, finding, text_file, usage
from serve.answers import Findings, found_answer, none_answer, not_projected
from serve.contract import Record
from serve.errors import OperatorError
from serve.harnesses import Harness, harness
from serve.lanes.iwe import IweLane
from serve.search import Answer, Searcher
from serve.selection import Choice, Selector
from serve.settings import ServeSettings
from serve.shelf import SnapshotShelf, candidate

CANDIDATES = 12  # offered to a selector before it searches for itself
Progress = Callable[[float, str], None]


class Retriever:
    """Answers for one harness. Callable from many threads at once; `close` ends what it keeps running."""

    def __init__(self, settings: ServeSettings, searcher: Searcher | None = None) -> None:
        self.settings = settings
        self.harness: Harness | None = harness(settings.harness) if settings.harness else None
        self.searcher = searcher or Searcher(settings.data_dir, settings.embedder, settings.chroma_token)
        self.searcher.iwe = IweLane(settings.data_dir / "catalog", settings.iwec_command, settings.iwe_budget)
        self.shelf = SnapshotShelf(self.searcher, settings.harness)
        self.usage = usage.UsageLog(settings.data_dir, settings.usage, settings.bounds.usage_rows)
        self._lock = Lock()
        self._selector: Selector | None = None
        self._selector_notes: tuple[str, ...] = ()

    def skill(self, query: str, *, cancelled: Event | None = None, progress: Progress | None = None) -> dict[str, Any]:
        """The answer to a query. Raises OperatorError when there is no index or the query cannot be used."""
        begun = time.perf_counter()
        stop, tell = cancelled or Event(), progress or _silent
        tell(0.0, "looking for skills")
        findings = self._find(query, stop, tell)
        answer = self._answer(findings, tell)
        answer["milliseconds"] = round((time.perf_counter() - begun) * 1000, 2)
        self._record(query, findings, answer)
        tell(1.0, "done")
        return answer

    def _find(self, query: str, stop: Event, tell: Progress) -> Findings:
        """Which skill the query means: at once when it names one, else as the selector says."""
        snapshot = self.searcher.live.current()
        named, note = finding.named(snapshot, query.strip(), self.shelf.shows)
        if named is not None:
            choice = Choice(selector="exact", id=named.id, reason="the query is this skill's ID, or a name only it has")
            return Findings(choice, named, None, snapshot, (note,) if note else ())
        notes = (note,) if note else ()
        ranking = self.shelf.answer(query, CANDIDATES)
        if not ranking.rows:
            choice = Choice(selector="none", reason="no skill has anything in common with the query")
            return Findings(choice, None, ranking, snapshot, notes)
        tell(0.2, f"choosing among {len(ranking.rows)} skills")
        found = self._choose(query, ranking, stop)
        return found._replace(notes=(*notes, *found.notes))

    def _choose(self, query: str, ranking: Answer, stop: Event) -> Findings:
        selector, notes = self._open_selector()
        deadline = time.monotonic() + self.settings.scout.timeout
        begun = time.perf_counter()
        candidates = [candidate(row) for row in ranking.rows]
        choice = selector.choose(query, candidates, self.shelf, deadline=deadline, cancelled=stop)
        took = round((time.perf_counter() - begun) * 1000, 2)
        snapshot = self.searcher.live.current()
        record: Record | None = None
        if choice.id:
            try:
                record = self.shelf.record(snapshot, choice.id)
            except OperatorError:
                gone = f"the chosen skill {choice.id} is no longer in the index"
                return Findings(choice, None, ranking, snapshot, notes, took).failed(gone)
        return Findings(choice, record, ranking, snapshot, notes, took)

    def _answer(self, findings: Findings, tell: Progress) -> dict[str, Any]:
        record = findings.record
        if record is None:
            return none_answer(findings)
        tell(0.8, f"reading {record.name}")
        try:
            file = text_file.read(record)
        except OperatorError as error:
            return none_answer(findings.failed(f"{record.id} was chosen, but {error.what}: {error.where}"))
        projection = self._project(record)
        files = bundle.bundled(record.path)
        reload = self.harness.reload if self.harness else ""
        return found_answer(findings, record, file, files, projection, reload, self.settings.bounds.answer_chars)

    def _project(self, record: Record) -> dict[str, Any]:
        """What became of the package in the harness's lane. The text is returned whatever happened here."""
        if self.harness is None:
            return not_projected("none", "no harness is set")
        from serve.projection.projector import Projector  # only a chosen skill is copied

        try:
            done = Projector(self.settings.data_dir, self.harness.name, self.settings.bounds).project(record)
        except OperatorError as error:
            return not_projected("failed", f"{error.what} ({error.where})" if error.where else error.what)
        return {
            "state": done.state,
            "name": done.name if self.harness.lane_setting or done.state == "installed" else "",
            "path": str(done.path),
            "files": done.files,
            "skipped": list(done.skipped),
            "reason": f"{self.harness.title} has it installed itself" if done.state == "installed" else "",
        }

    def _open_selector(self) -> tuple[Selector, tuple[str, ...]]:
        with self._lock:
            if self._selector is None:
                from serve.selection.registry import open_selector

                self._selector, self._selector_notes = open_selector(self.settings.scout, self.settings.harness)
            return self._selector, self._selector_notes

    def _record(self, query: str, findings: Findings, answer: dict[str, Any]) -> None:
        """Put the query into the local usage record, unless it is switched off."""
        ranking = findings.ranking
        kept = self.usage.record(
            usage.Event(
                tool="retrieve_skill",
                query=query,
                harness=self.settings.harness,
                lanes={name: "used" if lane["used"] else lane["reason"] for name, lane in answer["lanes"].items()},
                generation=findings.snapshot.generation,
                candidates=tuple((row.record.id, round(row.score, 6)) for row in ranking.rows) if ranking else (),
                chosen=answer["id"],
                selector=findings.choice.selector,
                reason=findings.choice.reason,
                failed=findings.choice.failed,
                milliseconds=answer["milliseconds"],
            )
        )
        answer["query_id"] = kept.query_id
        if kept.note:
            answer["notes"].append(kept.note)

    def warm(self) -> None:
        """Begin to start what runs beside this process: IWE and a scout. Callable beside answers."""
        if self.searcher.iwe is not None:
            self.searcher.iwe.start()
        self._open_selector()

    def close(self) -> None:
        """End what is kept running."""
        with self._lock:
            if self._selector is not None:
                self._selector.close()
        if self.searcher.iwe is not None:
            self.searcher.iwe.close()
        self.searcher.close()
        self.usage.close()


def _silent(_fraction: float, _text: str) -> None:
    pass
