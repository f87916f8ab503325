"""Run a Python script under cProfile and print where the time goes, as shares of the total."""

from __future__ import annotations

import argparse
import cProfile
import pstats
import runpy
import sys
from pathlib import Path


def run(path: str, arguments: list[str]) -> pstats.Stats:
    """Profile the script as if it had been started with these arguments."""
    profile = cProfile.Profile()
    saved, sys.argv = sys.argv, [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    profile.enable()
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as stop:
        print(f"the script exited with {stop.code}", file=sys.stderr)
    finally:
        profile.disable()
        sys.argv = saved
    return pstats.Stats(profile)


def table(stats: pstats.Stats, limit: int, by_cumulative: bool) -> list[str]:
    """One line per function: own share, cumulative share, calls, place."""
    total = stats.total_tt or 1e-9  # type: ignore[attr-defined]
    rows = []
    for (file, line, name), (_, calls, own, cumulative, _) in stats.stats.items():  # type: ignore[attr-defined]
        rows.append((own / total, cumulative / total, calls, f"{Path(file).name}:{line} {name}"))
    rows.sort(key=lambda row: row[1 if by_cumulative else 0], reverse=True)
    lines = [f"{'own':>7} {'with callees':>13} {'calls':>10}  function"]
    return lines + [f"{own:7.1%} {cum:13.1%} {calls:10d}  {place}" for own, cum, calls, place in rows[:limit]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=15, help="rows to print")
    parser.add_argument("--cumulative", action="store_true", help="sort by time including callees")
    parser.add_argument("script", help="Python file to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed to the script")
    args = parser.parse_args()
    print("\n".join(table(run(args.script, args.arguments), args.limit, args.cumulative)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
