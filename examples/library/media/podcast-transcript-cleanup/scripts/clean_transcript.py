"""Turn WebVTT or SRT cues into Markdown paragraphs with speaker and timestamp; fillers and stutters are removed."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TIMING = re.compile(r"(?:(\d{1,3}):)?(\d{2}):(\d{2})[.,]\d{3}\s+-->")
VOICE = re.compile(r"<v(?:\.[\w.]+)?\s+([^>]{1,60})>")
TAG = re.compile(r"</?[a-zA-Z0-9][^<>]{0,80}>")
PREFIX = re.compile(r"([A-Z][\w.'\u2019-]{0,30}(?: [A-Z][\w.'\u2019-]{0,30}){0,2}): (?=\S)")
FILLER = re.compile(r"(?:,\s*)?\b(?:u+h+m*|u+m+|e+rm*|a+h+m+|h+m{2,})\b,?", re.IGNORECASE)
# Only small words: "very very" and "had had" may be meant.
STUTTER = re.compile(r"\b(I|the|a|an|and|to|of|in|we|it|but|so|my)(?:[,\s]+\1\b)+", re.IGNORECASE)


class Cue(NamedTuple):
    start: int  # seconds
    speaker: str
    text: str


def cues(content: str) -> Iterator[Cue]:
    """The cues of a file in order; blocks without a timing line (header, notes, styles) are skipped."""
    speaker = ""
    for block in re.split(r"\r?\n[ \t]*\r?\n", content.lstrip("\ufeff")):
        lines = block.splitlines()
        at = next((number for number, line in enumerate(lines) if TIMING.search(line)), None)
        if at is None:
            continue
        hours, minutes, seconds = (int(part or 0) for part in TIMING.search(lines[at]).groups())  # type: ignore[union-attr]
        text = " ".join(line.strip() for line in lines[at + 1 :])
        voice = VOICE.search(text)
        text = TAG.sub("", VOICE.sub("", text))
        named = PREFIX.match(text)
        if voice:
            speaker = voice[1].strip()
        elif named:
            speaker, text = named[1], text[named.end() :]
        yield Cue(hours * 3600 + minutes * 60 + seconds, speaker, text)


def clean(text: str) -> str:
    text = FILLER.sub("", " ".join(text.split()))
    text = STUTTER.sub(lambda match: match[1], text)
    text = re.sub(r"\s+([,.?!])", r"\1", " ".join(text.split())).lstrip(", ")
    return text[:1].upper() + text[1:]


def paragraphs(found: Iterator[Cue], limit: int) -> list[Cue]:
    """Join neighbouring cues of one speaker until a sentence ends beyond `limit` characters."""
    joined: list[Cue] = []
    for cue in found:
        last = joined[-1] if joined else None
        full = last is not None and len(last.text) > limit and last.text.rstrip().endswith((".", "?", "!"))
        if last is not None and last.speaker == cue.speaker and not full:
            joined[-1] = last._replace(text=f"{last.text} {cue.text}")
        else:
            joined.append(cue)
    return joined


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="transcript (.vtt or .srt)")
    parser.add_argument("--paragraph", type=int, default=500, help="characters after which a new paragraph may begin")
    args = parser.parse_args()
    count = 0
    for cue in paragraphs(cues(args.file.read_text("utf-8")), args.paragraph):
        text = clean(cue.text)
        if not text:
            continue
        minutes, seconds = divmod(cue.start, 60)
        print(f"**{cue.speaker or 'Speaker'}** ({minutes:02d}:{seconds:02d}) {text}\n")
        count += 1
    if not count:
        parser.error("no cues found: is this WebVTT or SRT?")
    return 0


if __name__ == "__main__":
    sys.exit(main())
