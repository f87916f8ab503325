"""List the tests whose outcome differs between several JUnit XML reports of the same code."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree


def outcomes(path: Path) -> dict[str, str]:
    """Test name -> passed, failed or skipped. A test reported twice in one file (a retry) counts as mixed."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        if case.find("failure") is not None or case.find("error") is not None:
            outcome = "failed"
        else:
            outcome = "skipped" if case.find("skipped") is not None else "passed"
        found[name] = outcome if found.get(name, outcome) == outcome else "mixed"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", help="JUnit XML reports, one per run")
    args = parser.parse_args()
    runs = [outcomes(path) for path in args.files]
    seen: dict[str, list[str]] = defaultdict(list)
    for name in sorted({name for run in runs for name in run}):
        seen[name] = [run.get(name, "absent") for run in runs]
    flaky = {name: row for name, row in seen.items() if len(set(row)) > 1 or "mixed" in row}
    broken = [name for name, row in seen.items() if set(row) == {"failed"}]
    for name, row in sorted(flaky.items(), key=lambda item: (-item[1].count("failed"), item[0])):
        print(f"flaky   {row.count('failed')}/{len(runs)} failed  {name}  [{' '.join(row)}]")
    for name in broken:
        print(f"broken  {len(runs)}/{len(runs)} failed  {name}")
    print(f"{len(seen)} tests in {len(runs)} runs: {len(flaky)} flaky, {len(broken)} always failing", file=sys.stderr)
    return 1 if flaky or broken else 0


if __name__ == "__main__":
    sys.exit(main())
