"""How long a harness waits for the tools: from starting the server to the answer to tools/list, against a bare server.

    python benchmarks/serve_start.py [--rounds 15] [--skills 1000] [--data-dir DIR]...

The bare server shows two tools with the same library and does nothing else. Servers are started in turn, each round all of them, so
that the ratios hold on a busy machine too: the one printed is the median of the rounds' ratios. Without --data-dir two
libraries are made and built, of 10 skills and of N, to see that their size does not matter.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BAR = 1.15
BARE = """
import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def listed(context, params):
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    return types.ListToolsResult(tools=[types.Tool(name=n, description="A tool.", input_schema=schema) for n in ("one", "two")])

async def called(context, params):
    return types.CallToolResult(content=[])

async def main():
    server = Server("bare", version="1", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

anyio.run(main)
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "clock", "version": "1"}}


class Start(NamedTuple):
    """Seconds: until initialize was answered, until the list was, from closing standard input to the end; of the processor."""

    greeted: float
    listed: float
    ended: float
    busy: float


def started(command: list[str], environment: dict[str, str]) -> Start:
    """One server, from start to end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        assert server.stdin is not None and server.stdout is not None and server.stderr is not None  # noqa: PT018

        def send(method: str, number: int | None = None, params: dict[str, object] | None = None) -> None:
            message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
            server.stdin.write(json.dumps(message if number is None else {**message, "id": number}).encode() + b"\n")
            server.stdin.flush()

        send("initialize", 1, HELLO)
        if not server.stdout.readline():
            raise SystemExit(server.stderr.read().decode())
        greeted = time.perf_counter() - begun
        send("notifications/initialized")
        send("tools/list", 2)
        assert len(json.loads(server.stdout.readline())["result"]["tools"]) == 2
        listed = time.perf_counter() - begun
        server.stdin.close()
        server.wait()
        ended = time.perf_counter() - begun - listed
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Start(greeted, listed, ended, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def build(folder: Path, skills: int) -> Path:
    """A built index over a library of so many skills."""
    rng = random.Random(7)
    words = [f"word{number}" for number in range(2000)]
    for number in range(skills):
        path = folder / "library" / f"skill-{number}" / "SKILL.md"
        path.parent.mkdir(parents=True)
        text = " ".join(rng.choices(words, k=40))
        path.write_text(
            f"---\nname: skill-{number}\ndescription: SQL database, {text}.\n---\n\n# {text}\n", encoding="utf-8"
        )
    config = folder / "sources.toml"
    config.write_text(f'[[sources]]\nname = "made"\npath = {json.dumps(str(folder / "library"))}\n', encoding="utf-8")
    variables = {"RETRIEVAL_HOME": str(folder / "data"), "RETRIEVAL_CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", "from pipeline.cli import main; main(['build'])"],
        env={**os.environ, **variables},
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    if done.returncode not in {0, 3}:
        raise SystemExit(done.stderr)
    return folder / "data"


def subjects(folders: dict[str, Path]) -> dict[str, list[str]]:
    """The commands by name, the bare server first."""
    serve = [sys.executable, "-m", "serve", "--data-dir"]
    return {"bare": [sys.executable, "-c", BARE], **{name: [*serve, str(path)] for name, path in folders.items()}}


def measure(commands: dict[str, list[str]], rounds: int) -> dict[str, list[Start]]:
    """Each command once a round, after one round that does not count: it compiles and fills the cache."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found: dict[str, list[Start]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            start = started(command, environment)
            if number:
                found[name].append(start)
    return found


def show(found: dict[str, list[Start]]) -> bool:
    """Print the table; whether every server keeps the bar."""
    print(f"{'server':<24}{'greeted':>9}{'listed':>9}{'least':>9}{'cpu':>9}{'end':>9}{'ratio':>9}{'cpu ratio':>11}")
    bare = found["bare"]
    kept = True
    for name, starts in found.items():
        middle = [
            statistics.median(getattr(start, field) for start in starts)
            for field in ("greeted", "listed", "busy", "ended")
        ]
        least = min(start.listed for start in starts)
        ratio = statistics.median(one.listed / other.listed for one, other in zip(starts, bare, strict=True))
        busy = statistics.median(one.busy / other.busy for one, other in zip(starts, bare, strict=True))
        greeted, listed, cpu, ended = middle
        print(f"{name:<24}{greeted:>9.3f}{listed:>9.3f}{least:>9.3f}{cpu:>9.3f}{ended:>9.3f}{ratio:>9.2f}{busy:>11.2f}")
        kept = kept and ratio <= BAR
    print(f"bar for the ratio: {BAR}: {'kept' if kept else 'missed'}")
    return kept


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--skills", type=int, default=1000)
    parser.add_argument("--data-dir", action="append", type=Path, default=[])
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = {"no index": Path(scratch, "nothing")}
        if wanted.data_dir:
            folders |= {str(path)[-22:]: path.absolute() for path in wanted.data_dir}
        else:
            folders |= {f"{count} skills": build(Path(scratch, str(count)), count) for count in (10, wanted.skills)}
        return 0 if show(measure(subjects(folders), wanted.rounds)) else 1


if __name__ == "__main__":
    sys.exit(main())
