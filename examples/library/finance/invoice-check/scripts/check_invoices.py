"""Check supplier invoices in a CSV: arithmetic, repeated invoices, IBAN check digits and changed bank details."""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from itertools import combinations
from pathlib import Path

CENT = Decimal("0.01")
Row = dict[str, str]


def read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return [{key: (value or "").strip() for key, value in row.items()} for row in csv.DictReader(stream)]


def iban_is_valid(iban: str) -> bool:
    """Check digits after ISO 7064: the rearranged number leaves 1 when divided by 97."""
    compact = iban.replace(" ", "").upper()
    if not (15 <= len(compact) <= 34 and compact.isalnum() and compact.isascii()):
        return False
    return int("".join(str(int(letter, 36)) for letter in compact[4:] + compact[:4])) % 97 == 1


def arithmetic(lines: list[Row]) -> list[str]:
    """Findings about the sums of one invoice."""
    found = []
    gross = Decimal(0)
    for number, line in enumerate(lines, 1):
        net = (Decimal(line["quantity"]) * Decimal(line["unit_price"])).quantize(CENT, ROUND_HALF_UP)
        if abs(net - Decimal(line["net"])) > CENT:
            found.append(f"ask   line {number}: {line['quantity']} x {line['unit_price']} is {net}, not {line['net']}")
        gross += (Decimal(line["net"]) * (1 + Decimal(line["tax_rate"]) / 100)).quantize(CENT, ROUND_HALF_UP)
    stated = Decimal(lines[0]["total"])
    if abs(gross - stated) > CENT * len(lines):
        found.append(f"ask   total is {gross}, not {stated}")
    return found


def bank(lines: list[Row], known: dict[str, Row]) -> list[str]:
    iban, supplier = lines[0]["iban"], lines[0]["supplier"]
    if not iban_is_valid(iban):
        return [f"stop  IBAN {iban} has wrong check digits"]
    if supplier not in known:
        return [f"stop  {supplier} is no known supplier"]
    if iban.replace(" ", "") != known[supplier]["iban"].replace(" ", ""):
        return [f"stop  bank account differs from the record of {supplier}: call the number on file"]
    return []


def repeats(invoices: dict[tuple[str, str], list[Row]], days: int) -> dict[tuple[str, str], list[str]]:
    """Pairs of one supplier with the same amount within some days."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (one, first), (two, second) in combinations(invoices.items(), 2):
        apart = abs((date.fromisoformat(first[0]["date"]) - date.fromisoformat(second[0]["date"])).days)
        if one[0] == two[0] and Decimal(first[0]["total"]) == Decimal(second[0]["total"]) and apart <= days:
            found[two].append(f"stop  same amount as {one[1]}, {apart} days apart: paid twice?")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("invoices", type=Path, help="one invoice line a row")
    parser.add_argument("suppliers", type=Path, help="columns supplier, iban")
    parser.add_argument("--days", type=int, default=45, help="distance within which equal amounts are suspicious")
    args = parser.parse_args()
    invoices: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in read(args.invoices):
        invoices[row["supplier"], row["invoice"]].append(row)
    known = {row["supplier"]: row for row in read(args.suppliers)}
    twice = repeats(invoices, args.days)
    bad = 0
    for key, lines in invoices.items():
        found = bank(lines, known) + twice.get(key, []) + arithmetic(lines)
        bad += bool(found)
        print(f"{key[1]} {key[0]} {lines[0]['total']}: {'; '.join(found) if found else 'pay'}")
    print(f"{len(invoices)} invoices, {bad} to look at", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
