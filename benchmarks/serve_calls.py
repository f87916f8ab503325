"""Measure warm `retrieve_skill` calls of real MCP servers: latency, memory, and many servers at once.

    python benchmarks/serve_calls.py --data DIR [--queries FILE.jsonl] [--clients N] [--calls N]

DIR: a data directory with a built index; it is copied, so that the projections are the benchmark's own. Each server chooses by rank, as
one does without a model. Every other call names a skill with bundled files by its ID, so that half of the calls also project a package.
Times are wall seconds on this machine; the ratio is to a `ping` of the same server.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
QUERIES = ("clean a messy spreadsheet export", "why is this query slow", "audit the permissions of a cluster")
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}


class Server:
    """One `python -m serve`, spoken to line by line."""

    def __init__(self, data: Path, home: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RETRIEVAL_HOME": str(data), "HOME": str(home)}
        command = [sys.executable, "-m", "serve", "--harness", "hermes", "--selector", "rank"]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.number = 0
        self.ask("initialize", HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        """One line to the server."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """A request and its result."""
        assert self.process.stdout
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("the server ended")
            message = json.loads(line)
            if message.get("id") == self.number:
                return dict(message["result"])

    def retrieve(self, query: str) -> dict[str, Any]:
        """The structured answer to a query."""
        result = self.ask("tools/call", {"name": "retrieve_skill", "arguments": {"query": query}})
        if result.get("isError"):
            raise SystemExit(f"an error: {result['content'][0]['text']}")
        return dict(result["structuredContent"])

    def warm(self) -> float:
        """Wait until the model takes part; returns the seconds that took."""
        begun = time.perf_counter()
        while not self.retrieve("a first query about spreadsheets")["lanes"]["semantic"]["used"]:
            time.sleep(0.02)
        return time.perf_counter() - begun

    def megabytes(self) -> float:
        """Resident memory now; 0 where the system does not say."""
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return 0.0
        return int(text.split("VmRSS:")[1].split()[0]) / 1024

    def close(self) -> int:
        """End it as a harness does; returns its exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(30)


def work(server: Server, queries: list[str], calls: int) -> list[float]:
    """The milliseconds of each call."""
    taken = []
    for number in range(calls):
        begun = time.perf_counter()
        server.retrieve(queries[number % len(queries)])
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


def shown(name: str, taken: list[float], base: float) -> None:
    """One row of the table."""
    ordered = sorted(taken)
    p50, p99 = statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    print(f"| {name} | {p50:.1f} / {p99:.1f} ms | {p50 / base:.0f} x a ping | {len(taken)} calls |")


def packages(data: Path, most: int) -> list[str]:
    """IDs of skills with about ten bundled files."""
    from serve.snapshot import Live

    snapshot = Live(data).current()
    found = []
    for row in range(len(snapshot)):
        record = snapshot.record(row)
        if 6 <= record.files <= 14 and record.bytes < 400_000:
            found.append(record.id)
        if len(found) == most:
            break
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--calls", type=int, default=2000)
    given = parser.parse_args()
    queries = list(QUERIES)
    if given.queries:
        lines = given.queries.read_text(encoding="utf-8").splitlines()
        queries = [json.loads(line)["query"] for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        data, home = Path(folder) / "data", Path(folder) / "home"
        home.mkdir()
        for part in ("snapshots", "models"):
            shutil.copytree(given.data / part, data / part)
        measure(data, home, queries, given.clients, given.calls)


def measure(data: Path, home: Path, queries: list[str], clients: int, calls: int) -> None:
    """One server alone, then many at once."""
    named = packages(data, 60)
    pairs = zip(queries, itertools.cycle(named), strict=False)
    mixed = [text for pair in pairs for text in pair]
    server = Server(data, home)
    print(f"model in use after {server.warm():.2f} s")
    pings = []
    for _ in range(200):
        begun = time.perf_counter()
        server.ask("ping")
        pings.append((time.perf_counter() - begun) * 1000)
    base = statistics.median(pings)
    print("| what | p50 / p99 | ratio | calls |\n|---|---|---|---|")
    work(server, mixed, 20)
    shown("queries, chosen by rank", work(server, queries, 300), base)
    shown(f"exact IDs of {len(named)} packages of ten files, first copy", work(server, named, len(named)), base)
    shown("the same packages again", work(server, named, 300), base)
    shown("queries and packages in turn", work(server, mixed, 400), base)
    print(f"memory after that: {server.megabytes():.0f} MB, exit code {server.close()}")
    many(data, home, mixed, clients, calls // clients)


def many(data: Path, home: Path, queries: list[str], clients: int, calls: int) -> None:
    """Several servers at once, each with a client of its own."""
    servers = [Server(data, home) for _ in range(clients)]
    for server in servers:
        server.warm()
        work(server, queries, 20)
    before = [server.megabytes() for server in servers]
    taken: list[float] = []
    threads = [
        threading.Thread(target=lambda one=server: taken.extend(work(one, queries, calls))) for server in servers
    ]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    after = [server.megabytes() for server in servers]
    codes = {server.close() for server in servers}
    ordered = sorted(taken)
    print(
        f"{clients} servers at once, {len(taken)} calls in {seconds:.1f} s: p50 {statistics.median(ordered):.0f} ms, "
        f"p99 {ordered[int(len(ordered) * 0.99)]:.0f} ms; memory {max(before):.0f} -> {max(after):.0f} MB each, exit codes {codes}"
    )


if __name__ == "__main__":
    main()
