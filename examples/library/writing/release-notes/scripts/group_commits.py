"""Group Conventional Commit subjects into a draft changelog section; breaking changes come first."""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

SUBJECT = re.compile(r"(?P<type>[a-z]+)(?:\((?P<scope>[^()]{1,40})\))?(?P<breaking>!)?: (?P<text>.+)")
TITLES = {"feat": "Added", "perf": "Faster", "fix": "Fixed", "revert": "Reverted", "deprecate": "Deprecated"}
INTERNAL = {"chore", "ci", "build", "test", "tests", "refactor", "style", "docs"}
ORDER = ("Breaking", "Added", "Faster", "Fixed", "Deprecated", "Reverted", "Not in the convention")


def group(subjects: list[str]) -> tuple[dict[str, list[str]], int]:
    """Title -> entries in order of appearance, and how many internal commits were left out."""
    groups: dict[str, list[str]] = defaultdict(list)
    left_out = 0
    for subject in subjects:
        match = SUBJECT.fullmatch(subject)
        if not match:
            groups["Not in the convention"].append(subject)
            continue
        text = match["text"][:1].upper() + match["text"][1:]
        entry = f"**{match['scope']}**: {text}" if match["scope"] else text
        if match["breaking"]:
            groups["Breaking"].append(entry)
        elif match["type"] in INTERNAL:
            left_out += 1
        else:
            groups[TITLES.get(match["type"], "Not in the convention")].append(entry)
    return groups, left_out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", help="one subject a line; standard input when absent")
    parser.add_argument("--version", default="Unreleased", help="title of the section")
    args = parser.parse_args()
    text = args.file.read_text("utf-8") if args.file else sys.stdin.read()
    groups, left_out = group([line.strip() for line in text.splitlines() if line.strip()])
    print(f"## {args.version}")
    for title in ORDER:
        if groups.get(title):
            print(f"\n### {title}\n")
            print("\n".join(f"- {entry}" for entry in groups[title]))
    print(f"{left_out} internal commits left out", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
