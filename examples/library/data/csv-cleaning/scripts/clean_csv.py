"""Clean a delimited text file into UTF-8 CSV and log every change; rows that do not fit are reported, never guessed."""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter
from datetime import datetime
from io import StringIO
from itertools import islice
from pathlib import Path


def decode(raw: bytes) -> tuple[str, str]:
    """Text and the encoding that fitted: UTF-16 by its mark, then UTF-8, then Windows-1252."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16"), "utf-16"
    try:
        return raw.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace"), "cp1252"


def separator(text: str) -> str:
    """The candidate with which most of the first rows have as many fields as the header, and more than one."""

    def score(mark: str) -> tuple[int, int]:
        widths = [len(row) for row in islice(csv.reader(StringIO(text, newline=""), delimiter=mark), 50)]
        width = widths[0] if widths else 0
        return (widths.count(width) if width > 1 else 0, width)

    return max(",;\t|", key=score)


def header_name(name: str) -> str:
    return re.sub(r"\W+", "_", name.strip().lower()).strip("_") or "column"


class Cleaner:
    """Applies the chosen rules to one row and counts what it did."""

    def __init__(self, header: list[str], dates: dict[str, str], decimals: set[str], empties: set[str]) -> None:
        self.header, self.dates, self.decimals, self.empties = header, dates, decimals, empties
        self.log: Counter[str] = Counter()
        self.problems: list[str] = []

    def cell(self, line: int, column: str, value: str) -> str:
        text = " ".join(value.split())
        if text != value:
            self.log["cells trimmed"] += 1
        if text in self.empties:
            self.log["empty markers removed"] += 1
            return ""
        if text and column in self.dates:
            try:
                iso = datetime.strptime(text, self.dates[column]).date().isoformat()
            except ValueError:
                self.problems.append(f"line {line}: {column} is no date of this format: {text!r}")
                return text
            self.log["dates rewritten"] += 1
            return iso
        if text and column in self.decimals:
            self.log["decimal commas rewritten"] += 1
            return text.replace(".", "").replace(",", ".")
        return text

    def row(self, line: int, values: list[str]) -> list[str] | None:
        if not any(value.strip() for value in values):
            self.log["blank rows dropped"] += 1
            return None
        if len(values) != len(self.header):
            self.problems.append(f"line {line}: {len(values)} fields instead of {len(self.header)}, row left out")
            return None
        return [self.cell(line, column, value) for column, value in zip(self.header, values, strict=True)]


def pair(text: str) -> tuple[str, str]:
    column, equals, pattern = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("expected COLUMN=FORMAT, for example ordered=%d.%m.%Y")
    return column, pattern


def clean(source: Path, target: Path, args: argparse.Namespace) -> Cleaner:
    text, encoding = decode(source.read_bytes())
    mark = separator(text)
    dates, decimals, empties = dict(args.date), set(args.decimal_comma), set(args.empty)
    rows = csv.reader(StringIO(text, newline=""), delimiter=mark)
    cleaner = Cleaner([header_name(name) for name in next(rows, [])], dates, decimals, empties)
    for column in {*dates, *decimals} - set(cleaner.header):
        cleaner.problems.append(f"no column {column!r}; there are: {', '.join(cleaner.header)}")
    seen: set[tuple[str, ...]] = set()
    with target.open("w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(cleaner.header)
        for values in rows:
            row = cleaner.row(rows.line_num, values)
            if row is None:
                continue
            if tuple(row) in seen:
                cleaner.log["repeated rows dropped" if args.drop_repeats else "repeated rows kept"] += 1
                if args.drop_repeats:
                    continue
            seen.add(tuple(row))
            out.writerow(row)
            cleaner.log["rows written"] += 1
    print(f"encoding {encoding}, separator {mark!r}", file=sys.stderr)
    return cleaner


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--date", type=pair, action="append", default=[], help="COLUMN=FORMAT, rewritten as ISO date")
    parser.add_argument("--decimal-comma", action="append", default=[], metavar="COLUMN")
    parser.add_argument("--empty", action="append", default=[], metavar="TEXT", help="marker that means empty")
    parser.add_argument("--drop-repeats", action="store_true", help="leave out rows that are equal in every cell")
    args = parser.parse_args()
    if args.source.resolve() == args.target.resolve():
        parser.error("the target would overwrite the source")
    cleaner = clean(args.source, args.target, args)
    for what, count in sorted(cleaner.log.items()):
        print(f"{count:6d} {what}", file=sys.stderr)
    for problem in cleaner.problems:
        print(f"problem: {problem}", file=sys.stderr)
    return 1 if cleaner.problems else 0


if __name__ == "__main__":
    sys.exit(main())
