"""Judge two runs of a prompt against the same cases and list what got worse and what got better."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def failures(case: dict[str, Any], output: str) -> list[str]:
    """Reasons why an output breaks the case's assertions; empty when it is good."""
    lower = output.lower()
    reasons = [f"lacks {text!r}" for text in case.get("must_contain", []) if text.lower() not in lower]
    reasons += [f"contains {text!r}" for text in case.get("must_not_contain", []) if text.lower() in lower]
    words = len(output.split())
    if words > case.get("max_words", words):
        reasons.append(f"{words} words instead of at most {case['max_words']}")
    if "json_keys" in case:
        try:
            value = json.loads(output)
        except ValueError:
            reasons.append("is not JSON")
        else:
            held = value if isinstance(value, dict) else {}
            reasons += [f"lacks the key {key!r}" for key in case["json_keys"] if key not in held]
    return reasons


def judge(cases: list[dict[str, Any]], run: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Case -> reasons over all its repetitions; a case that was not run has failed."""
    outputs: dict[str, list[str]] = defaultdict(list)
    for row in run:
        outputs[row["id"]].append(row["output"])
    verdict = {}
    for case in cases:
        tries = outputs.get(case["id"], [])
        reasons = [reason for output in tries for reason in failures(case, output)]
        verdict[case["id"]] = reasons if tries else ["was not run"]
    return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path, help="JSON lines: id, input and assertions")
    parser.add_argument("before", type=Path, help="JSON lines: id, output")
    parser.add_argument("after", type=Path, help="JSON lines: id, output")
    args = parser.parse_args()
    cases = read_lines(args.cases)
    before, after = judge(cases, read_lines(args.before)), judge(cases, read_lines(args.after))
    worse = [name for name in before if not before[name] and after[name]]
    better = [name for name in before if before[name] and not after[name]]
    still = [name for name in before if before[name] and after[name]]
    for title, names, verdict in (("WORSE", worse, after), ("better", better, before), ("still bad", still, after)):
        for name in names:
            print(f"{title:<10}{name}: {'; '.join(verdict[name])}")
    passed = [sum(not reasons for reasons in run.values()) for run in (before, after)]
    print(f"{passed[0]} of {len(cases)} passed before, {passed[1]} now", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
