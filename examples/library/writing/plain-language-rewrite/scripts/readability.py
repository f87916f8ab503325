"""Measure how readable an English text is: sentence lengths, Flesch reading ease, passives, the longest sentences."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n")
WORD = re.compile(r"[A-Za-z]+(?:['\u2019-][A-Za-z]+)*")
PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being)\s+(?:\w+ly\s+)?\w+(?:ed|en)\b", re.IGNORECASE)


def syllables(word: str) -> int:
    """A rule of thumb: groups of vowels, a silent final e left out."""
    lower = word.lower()
    groups = len(re.findall(r"[aeiouy]+", lower))
    if lower.endswith("e") and not lower.endswith("le") and groups > 1:
        groups -= 1
    return max(groups, 1)


def sentences(text: str) -> list[str]:
    parts = (" ".join(part.split()) for part in SENTENCE_END.split(text))
    return [part for part in parts if WORD.search(part)]


def flesch(found: list[str]) -> float:
    """Flesch reading ease: 60 to 70 is plain, under 30 very hard."""
    words = [word for sentence in found for word in WORD.findall(sentence)]
    per_sentence = len(words) / len(found)
    per_word = sum(map(syllables, words)) / len(words)
    return 206.835 - 1.015 * per_sentence - 84.6 * per_word


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="plain text or Markdown")
    parser.add_argument("--longest", type=int, default=3, help="how many of the longest sentences to print")
    args = parser.parse_args()
    text = args.file.read_text("utf-8")
    found = sentences(text)
    if not found:
        parser.error("no sentence found")
    lengths = [len(WORD.findall(sentence)) for sentence in found]
    print(f"sentences            {len(found)}")
    print(f"words per sentence   {sum(lengths) / len(found):.1f} (longest {max(lengths)})")
    print(f"over 30 words        {sum(length > 30 for length in lengths)}")
    print(f"likely passives      {len(PASSIVE.findall(text))}")
    print(f"Flesch reading ease  {flesch(found):.0f}")
    for length, sentence in sorted(zip(lengths, found, strict=True), reverse=True)[: args.longest]:
        print(f"\n[{length} words] {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
