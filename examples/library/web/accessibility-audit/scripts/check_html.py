"""Static accessibility check of one HTML file: missing names, labels, language, heading order, duplicate IDs."""

from __future__ import annotations

import argparse
import sys
from html.parser import HTMLParser
from pathlib import Path

Attributes = dict[str, str]
NAMING = ("aria-label", "aria-labelledby", "title")
UNLABELLED = {"hidden", "submit", "reset", "button", "image"}


class Checker(HTMLParser):
    """Collects findings as (line, criterion, text) while it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str, str]] = []
        self.ids: set[str] = set()
        self.label_for: set[str] = set()
        self.fields: list[tuple[int, str, Attributes]] = []
        self.open: list[tuple[str, int, list[str]]] = []  # link, button, title, heading: tag, line, text pieces
        self.labels = 0
        self.level = 0
        self.has_title = False

    def note(self, criterion: str, text: str, line: int | None = None) -> None:
        self.found.append((line or self.getpos()[0], criterion, text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.check_ids(values)
        if tag == "html" and not values.get("lang", "").strip():
            self.note("3.1.1", "html has no lang")
        elif tag == "img":
            self.check_image(values)
        elif tag == "iframe" and not any(values.get(name) for name in NAMING):
            self.note("4.1.2", "iframe has no title")
        elif tag == "meta" and values.get("name") == "viewport" and "user-scalable=no" in values.get("content", ""):
            self.note("1.4.4", "viewport forbids zoom")
        elif tag == "label":
            self.labels += 1
            self.label_for.add(values.get("for", ""))
        elif tag in ("input", "select", "textarea"):
            self.check_field(tag, values)
        elif tag in ("div", "span") and "onclick" in values and values.get("role") not in ("button", "link"):
            self.note("2.1.1", f"{tag} with a click handler is no control: use a button")
        if tag in ("a", "button", "title") or is_heading(tag):
            self.start_named(tag, values)

    def check_ids(self, values: Attributes) -> None:
        if values.get("id") and values["id"] in self.ids:
            self.note("4.1.2", f"id {values['id']!r} is used twice")
        self.ids.add(values.get("id", ""))
        if values.get("tabindex", "").isdigit() and int(values["tabindex"]) > 0:
            self.note("2.4.3", "tabindex above 0 changes the order of focus")

    def check_image(self, values: Attributes) -> None:
        if "alt" not in values and values.get("role") not in ("presentation", "none"):
            self.note("1.1.1", f"img without alt: {values.get('src', '')[:60]}")
        elif self.open:
            self.open[-1][2].append(values.get("alt", ""))

    def check_field(self, tag: str, values: Attributes) -> None:
        named = self.labels or any(values.get(name) for name in NAMING)
        if values.get("type", "text") not in UNLABELLED and not named:
            self.fields.append((self.getpos()[0], tag, values))

    def start_named(self, tag: str, values: Attributes) -> None:
        if is_heading(tag):
            level = int(tag[1])
            if level > self.level + 1:
                self.note("1.3.1", f"heading jumps from h{self.level} to {tag}" if self.level else f"starts with {tag}")
            self.level = level
        if tag != "a" or "href" in values:
            given = [values[name] for name in NAMING if values.get(name)]
            self.open.append((tag, self.getpos()[0], given))

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1][2].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "label":
            self.labels = max(0, self.labels - 1)
        if self.open and self.open[-1][0] == tag:
            _, line, pieces = self.open.pop()
            text = " ".join("".join(pieces).split())
            if tag == "title":
                self.has_title = self.has_title or bool(text)
            elif not text:
                self.note("4.1.2" if tag in ("a", "button") else "1.3.1", f"{tag} has no text", line)
            if self.open:
                self.open[-1][2].append(text)

    def finish(self) -> list[tuple[int, str, str]]:
        """All findings by line; fields are judged here because their label may come later."""
        for line, tag, values in self.fields:
            if values.get("id", "") not in self.label_for - {""}:
                self.note("3.3.2", f"{tag} has no label: {values.get('name', '')}", line)
        if not self.has_title:
            self.note("2.4.2", "page has no title", 1)
        return sorted(self.found)


def is_heading(tag: str) -> bool:
    return len(tag) == 2 and tag[0] == "h" and tag[1] in "123456"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="rendered HTML")
    args = parser.parse_args()
    checker = Checker()
    checker.feed(args.file.read_text("utf-8", errors="replace"))
    found = checker.finish()
    for line, criterion, text in found:
        print(f"line {line}: {criterion} {text}")
    print(f"{len(found)} findings; this finds about a third of all barriers", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
