"""List risky spots of an .xlsx workbook without opening it in a spreadsheet program. Reads the XML, runs nothing."""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree
from zipfile import ZipFile

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
LIMIT = 200 * 1024 * 1024
# A number of two or more digits, or with a decimal point, that is no part of a cell address or a quoted text.
CONSTANT = re.compile(r"(?<![A-Za-z0-9_$.:!])(\d+\.\d+|\d{2,})(?![\d.:!A-Za-z(])")


def parse(book: ZipFile, name: str) -> ElementTree.Element:
    """One part of the workbook; parts that are huge or declare entities are refused."""
    if book.getinfo(name).file_size > LIMIT:
        raise ValueError(f"{name} is larger than {LIMIT} bytes")
    data = book.read(name)
    if b"<!DOCTYPE" in data[:1000]:
        raise ValueError(f"{name} has a document type declaration, which no spreadsheet program writes")
    return ElementTree.fromstring(data)


def sheets(book: ZipFile) -> Iterator[tuple[str, str, str]]:
    """(name, state, part) of each sheet in order."""
    targets = {rel.get("Id"): rel.get("Target", "") for rel in parse(book, "xl/_rels/workbook.xml.rels")}
    for sheet in parse(book, "xl/workbook.xml").iter(f"{MAIN}sheet"):
        target = targets.get(sheet.get(REL), "")
        part = target.lstrip("/") if target.startswith("/") else str(PurePosixPath("xl") / target)
        yield sheet.get("name", "?"), sheet.get("state", "visible"), part


def sheet_findings(root: ElementTree.Element) -> Iterator[str]:
    formulas: dict[str, list[str]] = defaultdict(list)
    numbers: dict[str, list[str]] = defaultdict(list)
    for cell in root.iter(f"{MAIN}c"):
        address = cell.get("r", "?")
        column = address.rstrip("0123456789")
        formula, value = cell.find(f"{MAIN}f"), cell.findtext(f"{MAIN}v", "")
        if cell.get("t") == "e":
            yield f"{address}: error value {value}"
        if formula is None:
            if cell.get("t", "n") == "n" and value:
                numbers[column].append(address)
            continue
        formulas[column].append(address)
        text = re.sub(r'"[^"]*"', '""', formula.text or "")
        if "#REF!" in text:
            yield f"{address}: formula refers to a deleted cell"
        for constant in CONSTANT.findall(text):
            yield f"{address}: constant {constant} inside ={formula.text}"
    for column, held in formulas.items():
        typed = numbers.get(column, [])
        if typed and len(held) >= 4 * len(typed):
            yield f"column {column}: typed numbers among {len(held)} formulas: {', '.join(typed[:5])}"


def audit(path: Path) -> Iterator[str]:
    with ZipFile(path) as book:
        names = book.namelist()
        links = sum(name.startswith("xl/externalLinks/externalLink") for name in names)
        if links:
            yield f"workbook: {links} external links"
        if "xl/vbaProject.bin" in names:
            yield "workbook: contains macros"
        for name, state, part in sheets(book):
            if state != "visible":
                yield f"{name}: sheet is {state}"
            if part in names and "worksheets" in part:
                for finding in sheet_findings(parse(book, part)):
                    yield f"{name}!{finding}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="workbook (.xlsx or .xlsm)")
    args = parser.parse_args()
    found = list(audit(args.file))
    print("\n".join(found) if found else "nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
