"""Measures the IWE lane: what it adds to the ranking of a built index by its weight, what a search costs, what `iwec` takes.

    python benchmarks/iwe.py --data DIR --corpus DIR [--iwec PROGRAM] [--every N] [--weights 0 0.25 0.5 1] FILE...

--data is a data directory whose index was built from the folders of --corpus, one source each, named as `evaluate.py` names
paths. Request files are those of `evaluate.py`. IWE makes its index anew for each search: over 10,000 cards count on some
seconds a request, or take every Nth.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import evaluate
from serve import ranking
from serve.embedder import EmbedderConfig, open_embedder
from serve.lanes import semantic
from serve.lanes.iwe import IweLane
from serve.lanes.lexical import LexicalIndex
from serve.ranking import Described, Lane
from serve.snapshot import Live

PATIENT = 120.0  # seconds: the benchmark waits for each search


class Asked(msgspec.Struct, frozen=True):
    """A request with what each lane found for it, and the seconds that IWE took."""

    request: evaluate.Request
    lanes: dict[str, Lane]
    seconds: float


def ready(lane: IweLane) -> float:
    """Start the lane; returns how long it took until it could be asked."""
    begun = time.perf_counter()
    lane.start()
    while not lane.status()["running"]:
        if time.perf_counter() - begun > PATIENT:
            raise SystemExit(f"IWE is not ready: {lane.status()['reason']}")
        time.sleep(0.01)
    return time.perf_counter() - begun


def memory(pid: int) -> str:
    """The most memory that a process held, where the system tells it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    return next((line.split(":")[1].strip() for line in lines if line.startswith("VmHWM")), "unknown")


def ask(file: Path, live: Live, lane: IweLane, every: int) -> list[Asked]:
    """All lanes on the requests of a file."""
    snapshot = live.current()
    words = LexicalIndex(snapshot.lexical)
    embedder = open_embedder(EmbedderConfig())
    lines = [line for line in file.read_bytes().splitlines() if line.strip()][::every]
    out = []
    for request in (msgspec.json.decode(line, type=evaluate.Request) for line in lines):
        text = " ".join(request.query.split())
        vectors = np.stack([embedder.query(part) for part in semantic.parts(text)])
        begun = time.perf_counter()
        found = lane.hits(text, ranking.POOL, snapshot)
        seconds = time.perf_counter() - begun
        if found.hits is None:
            raise SystemExit(f"{request.id}: {found.reason}")
        near = Lane(name="semantic", hits=semantic.search(snapshot.vectors, vectors, ranking.POOL))
        said = Lane(name="lexical", hits=words.search(text, ranking.POOL))
        out.append(Asked(request, {"semantic": near, "lexical": said, "iwe": found}, seconds))
    embedder.close()
    return out


def report(file: Path, asked: Sequence[Asked], live: Live, corpus: Path, weights: Sequence[float]) -> None:
    """Print the figures of IWE alone and of each weight beside the other lanes, and the times."""
    snapshot = live.current()
    _pool, groups = evaluate.read_pool(corpus, fold=False)
    records = [snapshot.record(row) for row in range(len(snapshot))]
    skills = [SimpleNamespace(group=groups[os.path.relpath(record.path, corpus)]) for record in records]
    described = [Described(record.name, record.description, record.tags) for record in records]
    gold = [frozenset(groups[path] for path in item.request.accept if path in groups) for item in asked]
    kinds = [item.request.kind for item in asked]
    rankings = {"iwe alone": [_run(ranking.fuse([item.lanes["iwe"]])) for item in asked]}
    for weight in weights:
        given = {"semantic": 1.0, "lexical": 1.0, "iwe": weight}
        rankings[f"semantic 1, lexical 1, iwe {weight:g}"] = [
            _run(
                ranking.rank(
                    item.request.query, list(item.lanes.values()), described.__getitem__, limit=200, weights=given
                )
            )
            for item in asked
        ]
    evaluate.show(
        {"file": file.name, "part": "", **evaluate.report(name, kinds, skills, gold, found)}
        for name, found in rankings.items()
    )
    taken = sorted(item.seconds for item in asked)
    print(f"a search: p50 {_at(taken, 0.5):.2f} s, p99 {_at(taken, 0.99):.2f} s, {len(taken)} of them\n")


def _run(ranked: Sequence[ranking.Ranked]) -> evaluate.Run:
    return evaluate.Run(rows=[item.row for item in ranked], best=ranked[0].score if ranked else 0.0)


def _at(taken: Sequence[float], share: float) -> float:
    return taken[min(int(len(taken) * share), len(taken) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--data", type=Path, required=True, help="data directory with an index and its catalog")
    parser.add_argument("--corpus", type=Path, required=True, help="folder that the index was built from")
    parser.add_argument("--iwec", default="iwec", help="the program")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth request")
    parser.add_argument("--weights", type=float, nargs="+", default=[0.0, 0.25, 0.5, 1.0])
    chosen = parser.parse_args()
    live = Live(chosen.data)
    lane = IweLane(chosen.data / "catalog", chosen.iwec, PATIENT)
    try:
        started = ready(lane)
        for file in chosen.files:
            report(file, ask(file, live, lane, chosen.every), live, chosen.corpus, chosen.weights)
        held = memory(lane.status()["pid"])
        print(f"{len(live.current())} cards; iwec {lane.status()['version']}: ready in {started:.1f} s, {held} at most")
    finally:
        lane.close()


if __name__ == "__main__":
    main()
