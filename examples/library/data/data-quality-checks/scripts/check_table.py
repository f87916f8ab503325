"""Check a CSV table against rules in JSON and list the broken ones with examples."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

Row = dict[str, str]
KINDS = ("required", "unique", "number", "date", "min", "max", "allowed", "pattern")


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def cell_test(kind: str, argument: Any) -> Callable[[str], bool]:
    """A function that is true for good cells. Empty cells are the business of `required` alone."""
    tests: dict[str, Callable[[str], bool]] = {
        "required": lambda text: text != "",
        "number": lambda text: text == "" or is_number(text),
        "date": lambda text: text == "" or is_date(text),
        "min": lambda text: not is_number(text) or float(text) >= argument,
        "max": lambda text: not is_number(text) or float(text) <= argument,
        "allowed": lambda text: text == "" or text in argument,
        "pattern": lambda text: text == "" or re.fullmatch(argument, text) is not None,
    }
    return tests[kind]


def broken_lines(rows: list[Row], column: str, kind: str, argument: Any) -> list[int]:
    """Line numbers of the rows that break one rule; the header is line 1."""
    values = [row[column].strip() for row in rows]
    if kind == "unique":
        seen: set[str] = set()
        lines = []
        for number, value in enumerate(values, 2):
            if value in seen and value:
                lines.append(number)
            seen.add(value)
        return lines
    good = cell_test(kind, argument)
    return [number for number, value in enumerate(values, 2) if not good(value)]


def check(rows: list[Row], rules: dict[str, Any]) -> list[tuple[str, str]]:
    """(level, message) for each broken rule."""
    found = []
    low, high = rules.get("rows", [0, float("inf")])
    if not low <= len(rows) <= high:
        found.append(("error", f"{len(rows)} rows, expected {low} to {high}"))
    for column, settings in rules["columns"].items():
        level = settings.get("level", "error")
        if rows and column not in rows[0]:
            found.append(("error", f"column {column} is missing"))
            continue
        for kind in KINDS:
            if kind not in settings or settings[kind] is False:
                continue
            lines = broken_lines(rows, column, kind, settings[kind])
            if lines:
                first = ", ".join(map(str, lines[:3]))
                found.append((level, f"{column}: {kind} broken in {len(lines)} of {len(rows)} rows (lines {first})"))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, help="CSV file with a header")
    parser.add_argument("rules", type=Path, help="JSON file: rows [min, max], columns {name: rules}")
    args = parser.parse_args()
    with args.table.open(encoding="utf-8-sig", newline="") as stream:
        rows = [{key: value or "" for key, value in row.items() if key} for row in csv.DictReader(stream)]
    found = check(rows, json.loads(args.rules.read_text("utf-8")))
    for level, message in sorted(found):
        print(f"{level:<6}{message}")
    print(f"{len(rows)} rows checked, {len(found)} rules broken", file=sys.stderr)
    return 1 if any(level == "error" for level, _ in found) else 0


if __name__ == "__main__":
    sys.exit(main())
