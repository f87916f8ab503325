"""Compare budget and actual figures, show the lines beyond both limits, and give two outlooks for the year."""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """One account. kind is "income" or "cost"; all amounts are positive."""

    account: str
    kind: str
    budget: Decimal
    actual: Decimal
    year_budget: Decimal

    @property
    def effect(self) -> Decimal:
        """Effect on the result: positive is favourable."""
        difference = self.actual - self.budget
        return difference if self.kind == "income" else -difference

    @property
    def percent(self) -> Decimal | None:
        return abs(self.actual - self.budget) / self.budget * 100 if self.budget else None


def read(path: Path) -> list[Line]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for number, row in enumerate(rows, 2):
        if row["kind"] not in ("income", "cost"):
            raise ValueError(f"line {number}: kind must be income or cost, not {row['kind']!r}")
    amounts = ("budget", "actual", "year_budget")
    return [Line(row["account"], row["kind"], *(Decimal(row[name]) for name in amounts)) for row in rows]


def outlooks(line: Line, months: int) -> tuple[Decimal, Decimal]:
    """(cause is past: the rest as budgeted, cause goes on: run rate)."""
    return line.actual + line.year_budget - line.budget, line.actual * 12 / months


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="CSV: account, kind, budget, actual, year_budget (year to date)")
    parser.add_argument("--percent", type=Decimal, default=Decimal(5), help="limit in per cent of the budget")
    parser.add_argument("--amount", type=Decimal, default=Decimal(1000), help="limit in currency")
    parser.add_argument("--always", type=Decimal, default=Decimal(10000), help="effect shown whatever its percentage")
    parser.add_argument("--months-done", type=int, default=3, choices=range(1, 13), metavar="1..12")
    args = parser.parse_args()
    try:
        lines = read(args.file)
    except ValueError as error:
        parser.error(str(error))
    shown = [
        line
        for line in lines
        if abs(line.effect) >= args.always
        or (abs(line.effect) >= args.amount and (line.percent is None or line.percent >= args.percent))
    ]
    print(f"{'account':<20}{'budget':>12}{'actual':>12}{'effect':>12}  {'%':>6}    {'year: past':>12}{'goes on':>12}")
    for line in sorted(shown, key=lambda item: -abs(item.effect)):
        share = "new" if line.percent is None else f"{line.percent:.1f}"
        past, on = outlooks(line, args.months_done)
        mark = "F" if line.effect > 0 else "U"
        print(
            f"{line.account:<20}{line.budget:>12,.0f}{line.actual:>12,.0f}{line.effect:>+12,.0f}"
            f"  {share:>6} {mark}  {past:>12,.0f}{on:>12,.0f}"
        )
    rest = sum((line.effect for line in lines if line not in shown), Decimal(0))
    total = sum((line.effect for line in lines), Decimal(0))
    print(f"other lines {rest:+,.0f}, result against budget {total:+,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
