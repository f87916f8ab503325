"""What the reader takes from a body: headings, first paragraph, head, digest and sketch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipeline.model import Reading
from pipeline.reader import read_skill
from tests.support import ROOT


def read(body: str) -> Reading:
    return read_skill(f"---\nname: a\ndescription: b\n---\n{body}".encode(), "a")


@pytest.mark.parametrize(
    ("body", "headings"),
    [
        ("# One\n## Two\n### Three\n#### Four\n##### Five\n", ("One", "Two", "Three", "Four")),
        ("One\n===\n\nTwo\n---\n\nText\n\n---\n", ("One", "Two")),
        ("# Closed #\n## C# ##\n### #\n#\n#NoSpace\n#\tTab\n", ("Closed", "C#", "Tab")),
        ("   # Three spaces\n    # Four spaces\n", ("Three spaces",)),
        ("# A\n\n#\nnot a heading\n", ("A",)),
        ("```bash\n# no heading\n```\n# Yes\n", ("Yes",)),
        ("~~~\n# no\n```\n# no\n~~~~\n# Yes\n", ("Yes",)),
        ("````md\n```\n# no\n```\n# no\n````\n# Yes\n", ("Yes",)),
        ("1. Do\n   ```sh\n   # no\n   ```\n- ```sh\n  # no\n  ```\n# Yes\n", ("Yes",)),
        ("    ```\n# no\n    ```\n# Yes\n", ("Yes",)),
        ("``` `inline` ```\n# Yes\n", ("Yes",)),
        ("# A\n```\n# open to the end\n", ("A",)),
        ("<!--\n# no\n-->\n# Yes\n<!-- x --> \n# Also\n", ("Yes", "Also")),
        ("- item\n---\n> quote\n---\n| a |\n---\n", ()),
        ("# Two  \t words\u200b here\n", ("Two words here",)),
    ],
)
def test_headings_are_those_outside_code_and_comments(body: str, headings: tuple[str, ...]) -> None:
    assert read(body).headings == headings


def test_headings_are_limited_in_number_and_length() -> None:
    reading = read("".join(f"# {number} {'x' * 500}\n" for number in range(500)))

    assert len(reading.headings) == 64
    assert {len(heading) for heading in reading.headings} == {200}


@pytest.mark.parametrize(
    ("body", "paragraph"),
    [
        ("# T\n\nOne\ntwo.\n\nThree.\n", "One two."),
        ("> Quoted\n> twice.\n\nText.\n", "Quoted twice."),
        ("Title\n=====\n\nText.\n", "Text."),
        ("![logo](a.png)\n[![b](c)](d)\n\n<p align='center'>\n\nText.\n", "Text."),
        ("```\ncode\n```\n\nText.\n", "Text."),
        ("<!-- hidden\nstill -->\nText.\n", "Text."),
        ("| a | b |\n|---|---|\n\n---\n\nText.\n", "Text."),
        ("- one\n- two\n\nText.\n", "Text."),
        ("- one\n- two\n", "one"),
        ("Text\n- item\n", "Text"),
        ("# Only\n## Headings\n", ""),
        ("\n" * 100_000 + "Text.", "Text."),
    ],
)
def test_the_first_paragraph_stands_in_for_a_description(body: str, paragraph: str) -> None:
    assert read_skill(body.encode(), "a").description == paragraph


def test_the_head_keeps_lines_and_drops_surplus_white_space() -> None:
    head = read("\n\n  A  \n\n\n\nB\t\n" + "word \n" * 5000).head

    assert head.startswith("A\n\nB\nword\nword")
    assert len(head) <= 4_000


def test_digest_and_sketch_ignore_case_white_space_and_frontmatter() -> None:
    one = read("# Knots\n\nTie it well and hold it fast.\n")
    other = read_skill(b"# KNOTS Tie it\twell and\n\n\nhold it fast.", "other")

    assert one.body_digest == other.body_digest
    assert one.sketch == other.sketch
    assert one.body_digest != read("# Knots\n\nTie it well and hold it fast!\n").body_digest


def test_the_sketch_tells_how_much_two_bodies_share() -> None:
    words = [f"w{number}" for number in range(600)]
    whole = set(read(" ".join(words)).sketch)
    edited = set(read(" ".join(["new", *words[:590]])).sketch)
    shifted = set(read(" ".join([*words[300:], *(f"v{number}" for number in range(300))])).sketch)
    foreign = set(read(" ".join(f"x{number}" for number in range(600))).sketch)

    assert len(whole) == 64
    assert len(whole & edited) > 56
    assert 8 < len(whole & shifted) < 48
    assert not whole & foreign


@pytest.mark.parametrize(
    ("body", "size"), [("", 0), ("one", 1), ("one two three", 1), ("a b c d", 1), ("a b c d e", 2)]
)
def test_a_short_body_has_a_short_sketch(body: str, size: int) -> None:
    sketch = read(body).sketch

    assert len(sketch) == size
    assert list(sketch) == sorted(sketch)
    assert all(0 <= value < 2**63 for value in sketch)


def test_the_order_of_words_counts() -> None:
    assert read("one two three").sketch != read("three two one").sketch
    assert read("one two three four").sketch != read("two one three four").sketch


def test_a_body_that_repeats_itself_has_only_its_different_runs() -> None:
    assert len(read("to and fro " * 3000).sketch) == 3


def test_another_process_makes_the_same_of_the_same_bytes() -> None:
    data = "---\nname: a\ntags: [x, y, z]\n---\n# T\n\nTie the knots, one by one, until it is done.\n"
    code = f"from pipeline.reader import read_skill\nprint(repr(read_skill({data.encode()!r}, 'a')))"
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            encoding="utf-8",
        ).stdout.strip()
        for seed in ("1", "2")
    }

    assert answers == {repr(read_skill(data.encode(), "a"))}
