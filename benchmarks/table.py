"""Measure a build of a library against baselines of the same run and print a table of ratios.

    python benchmarks/table.py [--library DIR] [--skills N] [--queries FILE.jsonl] [--keep DIR]

DIR: a folder of skills, copied before it is touched; without it a library of N skills is generated. Each folder directly below it
becomes a source when there are at most 300 of them. Times are wall seconds on this machine and mean nothing elsewhere; the ratios do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-c", "from pipeline.cli import main; main()"]
QUERIES = (
    "clean a messy spreadsheet export",
    "why is this query slow",
    "audit the permissions of a cluster",
    "write release notes for the last sprint",
    "make it faster",
    "turn a recording into minutes of the meeting",
    "check an invoice against the order",
    "find the commit that broke the build",
)
EMBED_ALONE = """
import sys, time
sys.path.insert(0, {root!r})
from pipeline.engine.build import Build
from pipeline.model import Keyed, Selected
from pipeline.settings import load_settings
from pipeline.tasks import texts
build = Build(load_settings())
shorts = {{}}
for source in build.sources:
    selected = {{row.id: row for row in build.rows("select", source.name, Selected)}}
    rows = build.rows("descriptor", source.name, Keyed)
    shorts.update({{row.short: item.short for row, item in zip(rows, texts.descriptors(build, selected, rows))}})
embedder = build.embedder
begun = time.perf_counter()
done = sum(len(indices) for indices, _vectors in embedder.batches(list(shorts.values())))
print(done, time.perf_counter() - begun)
"""


class Ran(NamedTuple):
    """A finished process: wall seconds, peak resident MB, exit code, output."""

    seconds: float
    megabytes: float
    code: int
    out: str


def run(command: Sequence[str], cwd: Path, environment: dict[str, str]) -> Ran:
    """Run a process to its end and read its resource usage from the system."""
    with tempfile.TemporaryFile() as out:
        begun = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=out, stdin=subprocess.DEVNULL)
        _pid, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return Ran(seconds, usage.ru_maxrss / unit, os.waitstatus_to_exitcode(status), text)


def best(times: int, command: Sequence[str], cwd: Path, environment: dict[str, str]) -> Ran:
    """The fastest of several runs: what the machine can do when it is left alone."""
    return min((run(command, cwd, environment) for _ in range(times)), key=lambda ran: ran.seconds)


def generate(folder: Path, count: int) -> None:
    """A library of `count` skills with varied words, in twelve sources."""
    import random

    chance = random.Random(7)
    verbs = [
        "audit",
        "clean",
        "migrate",
        "review",
        "draft",
        "tune",
        "convert",
        "deploy",
        "monitor",
        "summarise",
        "plan",
    ]
    things = ["cluster", "ledger", "spreadsheet", "invoice", "dataset", "pipeline", "podcast", "contract", "backlog"]
    heads, tails = (
        ["ka", "lo", "mi", "ser", "tan", "vol", "zed", "qui", "pra"],
        ["ta", "rin", "mos", "del", "fex", "gul"],
    )
    words = [head + tail for head in heads for tail in tails]
    for number in range(count):
        verb, thing, extra = chance.choice(verbs), chance.choice(things), chance.choice(words)
        name = f"{verb}-{thing}-{extra}-{number}"
        body = " ".join(chance.choices(words + things + verbs, k=400))
        path = folder / f"lib{number % 12}" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        said = f"{verb.capitalize()} a {thing} with {extra}. Use when the {thing} needs {chance.choice(words)} or {chance.choice(words)}."
        path.write_text(f"---\nname: {name}\ndescription: {said}\n---\n\n# {name}\n\n{body}\n", encoding="utf-8")


def configure(folder: Path, config: Path) -> None:
    """One source for each folder of the library, or one for all of it."""
    children = sorted(child for child in folder.iterdir() if child.is_dir() and child.name != ".git")
    chosen = children if 1 < len(children) <= 300 else [folder]
    blocks = [
        f'[[sources]]\nname = "s{n}"\nkind = "skills"\npath = {json.dumps(str(path))}\n'
        for n, path in enumerate(chosen)
    ]
    config.write_text('[policy]\nuncategorized = "index"\n' + "\n".join(blocks), encoding="utf-8")


def ask(folder: Path, queries: Sequence[str], rounds: int = 5) -> tuple[float, float]:
    """p50 and p99 of warm queries in milliseconds."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    sys.path.insert(0, str(ROOT))
    from serve.embedder import EmbedderConfig
    from serve.query import Query
    from serve.search import Searcher

    searcher = Searcher(folder, EmbedderConfig())
    for text in queries[:5]:
        searcher.answer(Query(text))
    times = []
    for _ in range(rounds):
        for text in queries:
            begun = time.perf_counter()
            searcher.answer(Query(text))
            times.append((time.perf_counter() - begun) * 1000)
    times.sort()
    return statistics.median(times), times[min(len(times) - 1, int(len(times) * 0.99))]


def measure(library: Path, work: Path, queries: Sequence[str], show: Callable[..., None]) -> None:
    """Run everything and show a row for each figure."""
    config = work / "sources.toml"
    configure(library, config)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RETRIEVAL_HOME": str(work / "data"),
        "RETRIEVAL_CONFIG": str(config),
    }
    git = ["git", f"--git-dir={work / 'git'}", f"--work-tree={library}"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True, stderr=subprocess.DEVNULL)

    first = run([*COMMAND, "build", "--json"], work, environment)
    account = json.loads(first.out)
    count, alone = map(
        float, run([sys.executable, "-c", EMBED_ALONE.format(root=str(ROOT))], work, environment).out.split()
    )
    show("skills found / indexed", f"{account['totals']['found']} / {account['totals']['indexed']}", "", "")
    show("embedding the same texts alone", f"{alone:.1f} s", f"{count / alone:.0f} texts/s", "")
    show("first build", f"{first.seconds:.1f} s", f"{first.seconds / alone:.2f} x embedding alone", "<= 1.25 x")
    show("first build, peak memory", f"{first.megabytes:.0f} MB", "", "<= 700 MB")

    run([*COMMAND, "build"], work, environment)
    status = best(5, [*git, "status", "--porcelain"], library, environment)
    idle = best(5, [*COMMAND, "build"], work, environment)
    show("git status", f"{status.seconds:.3f} s", "", "")
    show(
        "build with nothing to do",
        f"{idle.seconds:.3f} s",
        f"{idle.seconds / status.seconds:.2f} x git status",
        "<= 3 x and <= 0.6 s",
    )

    skill = next(path for path in sorted(library.rglob("SKILL.md")))
    edits = []
    for number in range(5):
        skill.write_text(
            skill.read_text(encoding="utf-8", errors="replace") + f"\nEdit number {number}.\n", encoding="utf-8"
        )
        edits.append(run([*COMMAND, "build"], work, environment))
    edit = min(edits, key=lambda ran: ran.seconds)
    show(
        "build after one edited body",
        f"{edit.seconds:.2f} s",
        f"{edit.seconds / idle.seconds:.1f} x nothing to do",
        "<= 1 s",
    )

    bare = best(5, [sys.executable, "-c", ""], work, environment)
    helped = best(5, [*COMMAND, "--help"], work, environment)
    show(
        "retrieval --help", f"{helped.seconds:.3f} s", f"{helped.seconds / bare.seconds:.1f} x bare Python", "<= 0.15 s"
    )
    cold = best(5, [*COMMAND, "search", queries[0]], work, environment)
    show("cold search", f"{cold.seconds:.2f} s", f"{cold.megabytes:.0f} MB", "<= 1.0 s")
    half, most = ask(work / "data", queries)
    show("warm query, p50 / p99", f"{half:.1f} / {most:.1f} ms", f"{len(queries)} queries", "<= 15 / 40 ms")


def main() -> None:
    """Read the arguments, measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--library", type=Path)
    parser.add_argument("--skills", type=int, default=2000)
    parser.add_argument("--queries", type=Path, help="JSON lines with a field `query`")
    parser.add_argument("--keep", type=Path, help="work here and leave everything, instead of in a temporary folder")
    arguments = parser.parse_args()
    queries = list(QUERIES)
    if arguments.queries:
        queries = [
            json.loads(line)["query"] for line in arguments.queries.read_text(encoding="utf-8").splitlines() if line
        ]
    work = arguments.keep or Path(tempfile.mkdtemp(prefix="retrieval-benchmark-"))
    work.mkdir(parents=True, exist_ok=True)
    try:
        library = work / "library"
        if arguments.library:
            shutil.copytree(arguments.library, library, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        else:
            generate(library, arguments.skills)
        print("| what | measured | ratio | bar |\n|---|---|---|---|")
        measure(library, work, queries, lambda *cells: print("| " + " | ".join(cells) + " |", flush=True))
    finally:
        if not arguments.keep:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
