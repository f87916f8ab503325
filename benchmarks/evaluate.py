"""Measures the ranking on request files: lanes alone and fused, by kind of request, over a folder of skills.

    python benchmarks/evaluate.py --corpus DIR [--vectors CACHE.npz] [--keep-duplicates] [--halves] [--json] FILE...

A request file has one JSON object a line: id, query, accept (paths of SKILL.md files below DIR, none for a request that no
skill answers) and kind (optional). A skill with the body, or the name and description, of an accepted one is accepted.
Embedding is by far the slowest part; with --vectors it is done once and kept.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pipeline.reader import read_skill
from pipeline.steps import descriptor, terms
from serve import ranking
from serve.lanes import lexical, postings, semantic

DEPTH = 100  # ranks below this count as not found
CUTS = (1, 3, 5, 10)
Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]


class Request(msgspec.Struct, frozen=True):
    """One line of a request file."""

    id: str
    query: str
    accept: tuple[str, ...] = ()
    kind: str = "task"


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """What the evaluation keeps of one skill. group: skills of one group answer for each other."""

    path: str
    described: ranking.Described
    short: str
    item: bytes
    group: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One request's ranks. rows: best first. best: the score of the first row, 0 when there is none."""

    rows: list[int]
    best: float


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Means over the requests that have an answer. hit: share with an accepted skill among the first k."""

    requests: int
    hit: dict[str, float]
    mrr: float
    ndcg10: float
    all_gold10: float


def read_pool(corpus: Path, *, fold: bool) -> tuple[list[Skill], dict[str, int]]:
    """The skills below a folder in path order, and the group of each path. fold: of equal bodies the first alone."""
    skills: list[Skill] = []
    known: dict[tuple[str, ...], int] = {}
    groups: dict[str, int] = {}
    links: list[int] = []
    seen: set[str] = set()
    for path in sorted(_skill_files(corpus)):
        reading = read_skill(path.read_bytes(), path.parent.name)
        made = descriptor.make(reading.name, reading.description, reading.tags, reading.headings, reading.head)
        name = path.relative_to(corpus).as_posix()
        number = groups[name] = len(links)
        links.append(number)
        for key in (("body", reading.body_digest), ("said", reading.name, reading.description)):
            first = known.setdefault(key, number)
            links[_root(links, number)] = _root(links, first)
        if fold and reading.body_digest in seen:
            continue
        seen.add(reading.body_digest)
        skills.append(
            Skill(
                path=name,
                described=ranking.Described(reading.name, reading.description, reading.tags),
                short=made.short,
                item=terms.make(made, reading.tags),
                group=number,
            )
        )
    final = {name: _root(links, number) for name, number in groups.items()}
    return [msgspec.structs.replace(skill, group=final[skill.path]) for skill in skills], final


def _skill_files(corpus: Path) -> Iterable[Path]:
    for folder, _folders, files in os.walk(corpus):
        yield from (Path(folder, file) for file in files if file.casefold() == "skill.md")


def _root(links: Sequence[int], number: int) -> int:
    while links[number] != number:
        number = links[number]
    return number


def embed_once(texts: Sequence[str], embed: Embed, cache: Path | None) -> Vectors:
    """The vectors of texts, taken from and added to a cache file when one is given."""
    held: dict[str, Vectors] = {}
    if cache and cache.exists():
        with np.load(cache) as stored:
            held = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))
    missing = [text for text in dict.fromkeys(texts) if text not in held]
    if missing:
        held.update(zip(missing, embed(missing), strict=True))
        if cache:
            np.savez(cache, texts=np.array(list(held)), vectors=np.array(list(held.values())))
    return np.array([held[text] for text in texts], dtype=np.float32)


def runs(
    skills: Sequence[Skill], requests: Sequence[Request], vectors: Vectors, asked: Sequence[Vectors]
) -> dict[str, list[Run]]:
    """Every request through each lane alone, the fusion, and the fusion with tie-breaker."""
    index = lexical.LexicalIndex(postings.assemble([skill.item for skill in skills]))
    out: dict[str, list[Run]] = {"lexical": [], "semantic": [], "fused": [], "fused + tie-breaker": []}
    for request, query in zip(requests, asked, strict=True):
        words = index.search(request.query, ranking.POOL)
        near = semantic.search(vectors, query, ranking.POOL)
        lanes = [ranking.Lane(name="semantic", hits=near), ranking.Lane(name="lexical", hits=words)]
        fused = ranking.fuse(lanes)
        settled = ranking.settle(request.query, fused, lambda row: skills[row].described)
        for name, hits in (("lexical", words), ("semantic", near)):
            out[name].append(Run(rows=hits.rows.tolist(), best=float(hits.scores[0]) if len(hits.rows) else 0.0))
        for name, ranked in (("fused", fused), ("fused + tie-breaker", settled)):
            out[name].append(Run(rows=[item.row for item in ranked], best=ranked[0].score if ranked else 0.0))
    return out


def figures(skills: Sequence[Skill], gold: Sequence[frozenset[int]], found: Sequence[Run]) -> Figures:
    """The means over requests. gold: the accepted groups of each; requests without any are left out."""
    rows = [_judge(skills, groups, run) for groups, run in zip(gold, found, strict=True) if groups]
    table = np.array(rows, dtype=np.float64).reshape(len(rows), len(CUTS) + 3)
    means = table.mean(axis=0).tolist() if rows else [0.0] * (len(CUTS) + 3)
    hit = {str(cut): mean for cut, mean in zip(CUTS, means, strict=False)}
    return Figures(requests=len(rows), hit=hit, mrr=means[-3], ndcg10=means[-2], all_gold10=means[-1])


def _judge(skills: Sequence[Skill], gold: frozenset[int], run: Run) -> list[float]:
    """Hits at CUTS, reciprocal rank, nDCG@10 and whether all gold is within 10. A second copy of a skill gains nothing."""
    ranks: list[int] = []
    seen: set[int] = set()
    for rank, row in enumerate(run.rows[:DEPTH], start=1):
        group = skills[row].group
        if group in gold and group not in seen:
            seen.add(group)
            ranks.append(rank)
    first = ranks[0] if ranks else DEPTH + 1
    gain = sum(1 / np.log2(rank + 1) for rank in ranks if rank <= 10)
    ideal = sum(1 / np.log2(rank + 1) for rank in range(1, min(10, len(gold)) + 1))
    within = sum(rank <= 10 for rank in ranks)
    return [
        *(float(first <= cut) for cut in CUTS),
        1 / first if ranks else 0.0,
        gain / ideal,
        float(within == len(gold)),
    ]


def separation(gold: Sequence[frozenset[int]], found: Sequence[Run]) -> tuple[float, float]:
    """For requests that no skill answers: the share that got an offer, and the AUC of the best score as a sign of one."""
    answered = np.array([run.best for groups, run in zip(gold, found, strict=True) if groups])
    empty = [run for groups, run in zip(gold, found, strict=True) if not groups]
    if not empty or not len(answered):
        return float("nan"), float("nan")
    offered = sum(bool(run.rows) for run in empty) / len(empty)
    wins = [float((answered > run.best).mean() + (answered == run.best).mean() / 2) for run in empty]
    return offered, float(np.mean(wins))


def report(
    name: str, kinds: Sequence[str], skills: Sequence[Skill], gold: Sequence[frozenset[int]], found: Sequence[Run]
) -> dict[str, object]:
    """One ranker's figures over all requests and by kind."""
    offered, auc = separation(gold, found)
    by_kind = {}
    for kind in dict.fromkeys(kinds):
        chosen = [i for i, other in enumerate(kinds) if other == kind and gold[i]]
        if chosen:
            by_kind[kind] = msgspec.to_builtins(figures(skills, [gold[i] for i in chosen], [found[i] for i in chosen]))
    return {
        "ranker": name,
        "all": msgspec.to_builtins(figures(skills, gold, found)),
        "kinds": by_kind,
        "none": {"offered": offered, "auc": auc},
    }


def evaluate(
    file: Path,
    skills: Sequence[Skill],
    groups: dict[str, int],
    vectors: Vectors,
    embed: Callable[[Sequence[str]], Vectors],
    halves: bool,
) -> list[dict[str, object]]:
    """The reports of one request file, one per ranker and half."""
    requests = [msgspec.json.decode(line, type=Request) for line in file.read_bytes().splitlines() if line.strip()]
    gold = [frozenset(groups[path] for path in request.accept if path in groups) for request in requests]
    for request, found in zip(requests, gold, strict=True):
        if request.accept and not found:
            raise SystemExit(f"{file}: none of the accepted paths of {request.id} is in the corpus")
    pieces = [semantic.parts(request.query) for request in requests]
    flat = embed([text for texts in pieces for text in texts])
    asked = np.split(flat, np.cumsum([len(texts) for texts in pieces])[:-1])
    started = time.perf_counter()
    results = runs(skills, requests, vectors, asked)
    spent = (time.perf_counter() - started) / max(len(requests), 1) * 1000
    print(
        f"\n{file.name}: {len(requests)} requests, {len(skills)} skills, {spent:.1f} ms each without the model",
        file=sys.stderr,
    )
    out = []
    for label, part in [
        ("", slice(None)),
        *([("first half", slice(0, None, 2)), ("second half", slice(1, None, 2))] if halves else []),
    ]:
        kinds = [request.kind for request in requests[part]]
        for name, found in results.items():
            out.append({"file": file.name, "part": label, **report(name, kinds, skills, gold[part], found[part])})
    return out


def show(reports: Iterable[dict[str, object]]) -> None:
    """The reports as one table, kinds indented under their ranker."""
    heads = [*(f"hit@{cut}" for cut in CUTS), "MRR", "nDCG@10", "all@10"]
    print(f"{'':44}{'n':>5} " + " ".join(f"{head:>7}" for head in heads) + "   none: offered, AUC")
    for item in reports:
        named = [f"{item['file']} {item['part']}".strip(), item["ranker"]]
        print(_line(" · ".join(named), item["all"], item["none"]))
        for kind, found in item["kinds"].items() if len(item["kinds"]) > 1 else ():
            print(_line(f"    {kind}", found, None))


def _line(label: str, found: dict[str, object], none: dict[str, float] | None) -> str:
    values = [*found["hit"].values(), found["mrr"], found["ndcg10"], found["all_gold10"]]
    text = f"{label:44}{found['requests']:5d} " + " ".join(f"{value:7.3f}" for value in values)
    return text if none is None or np.isnan(none["auc"]) else f"{text}   {none['offered']:.2f}, {none['auc']:.2f}"


def builtin_embedders() -> tuple[Embed, Embed]:
    """How the default model embeds skills and requests."""
    from serve.embedder import EmbedderConfig, open_embedder

    embedder = open_embedder(EmbedderConfig())

    def skills(texts: Sequence[str]) -> Vectors:
        out = np.zeros((len(texts), embedder.identity.dimension), dtype=np.float32)
        for places, vectors in embedder.batches(texts):
            out[places] = vectors
        return out

    return skills, lambda texts: np.stack([embedder.query(text) for text in texts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--corpus", type=Path, required=True, help="folder whose SKILL.md files are the pool")
    parser.add_argument("--vectors", type=Path, help="file (.npz) that keeps vectors between runs")
    parser.add_argument(
        "--keep-duplicates", action="store_true", help="rank equal bodies separately, unlike the product"
    )
    parser.add_argument("--halves", action="store_true", help="also report every other request alone, to see the noise")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    chosen = parser.parse_args()
    skills, groups = read_pool(chosen.corpus, fold=not chosen.keep_duplicates)
    passages, queries = builtin_embedders()
    vectors = embed_once([skill.short for skill in skills], passages, chosen.vectors)
    reports = [
        item for file in chosen.files for item in evaluate(file, skills, groups, vectors, queries, halves=chosen.halves)
    ]
    if chosen.json:
        print(json.dumps({"skills": len(skills), "reports": reports}, indent=1))
        return
    show(reports)


if __name__ == "__main__":
    main()
