"""The section step: headings, code, front matter, lines that are exact, long sections, and texts that mean harm."""

from __future__ import annotations

import resource
import sys
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.steps import passage, tokens
from pipeline.steps.anchors import Anchors
from pipeline.steps.section import OVERLAP, TOKENS, Part, Sectioned, make
from pipeline.tasks.references import measure
from serve.decode import decode, is_text
from serve.references.outline import MAX_SECTIONS, outline, readable

BY_RULE = tokens.spans
BUILTIN = measure.spans("builtin")


def cut(text: str | bytes) -> Sectioned:
    return make(text.encode("utf-8") if isinstance(text, str) else text, BY_RULE)


def paths(taken: Sectioned) -> list[tuple[str, int, int]]:
    """Path of headings, first and last line of each row."""
    return [(" > ".join(part.headings), part.first, part.last) for part in taken.parts]


GUIDE = """---
title: The guide
tags: [a, b]
---

Before any heading.

# Guide

Hello.

## Install

Run it.

### Linux

```sh
# no heading
apt install thing
```

Windows
-------

Use the package.
"""


def test_each_heading_is_a_row_with_its_path_and_its_lines() -> None:
    taken = cut(GUIDE)

    assert paths(taken) == [
        ("", 6, 6),
        ("Guide", 8, 10),
        ("Guide > Install", 12, 14),
        ("Guide > Install > Linux", 16, 21),
        ("Guide > Windows", 23, 26),
    ]
    assert taken.title == "The guide"
    assert taken.notes == ()


def test_a_row_is_its_lines_to_the_letter() -> None:
    lines = GUIDE.split("\n")

    for part in cut(GUIDE).parts:
        assert part.content == "\n".join(lines[part.first - 1 : part.last])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("~~~\n# no\n~~~\n\n# yes\n\nx\n", [("", 1, 3), ("yes", 5, 7)]),
        ("````\n```\n# no\n````\n# yes\nx\n", [("", 1, 4), ("yes", 5, 6)]),
        ("```\n# never closed\n\n# still code\n", [("", 1, 4)]),
        ("- item\n  ```\n  # no\n  ```\n# yes\nx", [("", 1, 4), ("yes", 5, 6)]),
        ("    # indented code\n\n# yes\nx", [("", 1, 1), ("yes", 3, 4)]),
        ("<!--\n# no\n-->\n# yes\nx", [("", 1, 3), ("yes", 4, 5)]),
        ("<pre>\n# no\n\n# no\n</pre>\n# yes\nx", [("", 1, 5), ("yes", 6, 7)]),
        ("<pre># no</pre>\n# yes\nx", [("", 1, 1), ("yes", 2, 3)]),
        ("#hashtag\n\n####### seven\n\n# yes\nx", [("", 1, 3), ("yes", 5, 6)]),
        ("Title\n=====\n\nx\n\nSub\n---\n\ny", [("Title", 1, 4), ("Title > Sub", 6, 9)]),
        ("text\n\n---\n\nmore", [("", 1, 5)]),
        ("| a |\n|---|\n| b |", [("", 1, 3)]),
        ("- item\n---\n\ntext", [("", 1, 4)]),
        ("# a #\nx\n## b ##   \ny", [("a", 1, 2), ("a > b", 3, 4)]),
        ("# \n\n##\n\ntext", [("", 1, 5)]),
        ("### deep\nx\n# top\ny\n#### far\nz", [("deep", 1, 2), ("top", 3, 4), ("top > far", 5, 6)]),
        ("###### six\nx", [("six", 1, 2)]),
    ],
)
def test_what_is_a_heading_and_what_is_not(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert paths(cut(text)) == expected


def test_a_bare_heading_above_others_is_in_their_path_and_no_row() -> None:
    taken = cut("# Book\n\n## Chapter\n\nText.\n\n## Last\n")

    assert paths(taken) == [("Book > Chapter", 3, 5), ("Book > Last", 7, 7)]


def test_equal_paths_are_told_apart_by_their_order() -> None:
    taken = cut("# A\n\n## Example\n\n1\n\n## Example\n\n2\n\n# B\n\n## Example\n\n3\n")

    assert [(part.headings, part.occurrence) for part in taken.parts] == [
        (("A", "Example"), 0),
        (("A", "Example"), 1),
        (("B", "Example"), 0),
    ]
    assert [part.anchor for part in taken.parts] == ["example", "example-1", "example-2"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("`code` and **bold**", "code and bold"),
        ("**bold** and *thin*", "bold and thin"),
        ("[link](http://x.y/z) here", "link here"),
        ("![logo](a.png) Name", "logo Name"),
        ("Install {#install .x}", "Install"),
        ("<a name='x'></a>Install", "Install"),
        ("snake_case and 2 * 3", "snake_case and 2 * 3"),
        ("`__init__`", "__init__"),
        ("Q&amp;A", "Q&A"),
        ("\\*args\\*", "*args*"),
        ("a\u200bb\u202ec", "abc"),
        ("{#only}", "{#only}"),
        ("x" * 300, "x" * 200),
    ],
)
def test_a_heading_is_read_without_its_markup(written: str, read: str) -> None:
    assert readable(written) == read


@pytest.mark.parametrize(
    ("text", "title", "first"),
    [
        ("---\ntitle: One\n---\n# H\nx", "One", 4),
        ("---\ntitle: 'Quoted: yes'\n...\n# H\nx", "Quoted: yes", 4),
        ("+++\ntitle = 'Toml'\ndate = 2020-01-01\n+++\n# H\nx", "Toml", 5),
        ("---\n# a comment\ntitle: One\n---\n# H\nx", "One", 5),
        ("---\n---\n# H\nx", "", 3),
        ("---\ntitle: [a, list]\n---\n# H\nx", "", 4),
        ("---\ntitle: 'never closed\n---\n# H\nx", "", 4),
        ("---\nother: 1\n---\n# H\nx", "", 4),
        ("\ufeff---\ntitle: Marked\n---\n# H\nx", "Marked", 4),
    ],
)
def test_front_matter_gives_the_title_and_is_no_text(text: str, title: str, first: int) -> None:
    taken = cut(text)

    assert taken.title == title
    assert paths(taken) == [("H", first, first + 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\n\nA rule above a text.\n\n---\n\n# H\nx", [("", 1, 5), ("H", 7, 8)]),
        ("---\ntitle: never closed\n# H\nx", [("", 1, 2), ("H", 3, 4)]),
        ("\n---\ntitle: not at the top\n", [("", 2, 3)]),
        ("```yaml\nname: x\n```\n# H\nx", [("", 1, 3), ("H", 4, 5)]),
        ("name: a word and a colon\n\n# H\nx", [("", 1, 1), ("H", 3, 4)]),
    ],
)
def test_what_only_looks_like_front_matter_is_text(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert paths(cut(text)) == expected


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r", "\r\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_lines_are_the_same_in_every_encoding_and_with_every_line_end(encoding: str, ends: str) -> None:
    if encoding in {"utf-16-le", "utf-16-be"} and ends == "\r\r\n":
        ends = "\r\n"
    taken = cut(GUIDE.replace("\n", ends).encode(encoding))

    assert paths(taken) == paths(cut(GUIDE))
    assert [part.content for part in taken.parts] == [part.content for part in cut(GUIDE).parts]


def long_text(words: int, per_line: int) -> str:
    lines = [" ".join(f"w{n}" for n in range(at, min(at + per_line, words))) for at in range(0, words, per_line)]
    return "# Long\n\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize("spans", [BY_RULE, BUILTIN], ids=["by rule", "builtin"])
@pytest.mark.parametrize("per_line", [7, 100, 10_000])
def test_a_long_section_is_cut_with_an_overlap_and_loses_nothing(spans, per_line: int) -> None:
    text = long_text(3_000, per_line)
    parts = make(text.encode(), spans).parts
    whole = "\n".join(text.split("\n")[:-1])

    assert len(parts) > 4
    assert [(part.part, part.parts) for part in parts] == [(n, len(parts)) for n in range(1, len(parts) + 1)]
    assert (parts[0].start, parts[-1].end) == (0, len(whole))
    assert {(part.top, part.bottom, part.text) for part in parts} == {(1, len(text.split("\n")) - 1, parts[0].text)}
    for part in parts:
        assert part.content == whole[part.start : part.end]
        assert part.first == 1 + whole.count("\n", 0, part.start)
        assert part.last == 1 + whole.count("\n", 0, part.end)
        assert len(list(spans(part.content))) <= TOKENS
    for before, after in pairwise(parts):
        shared = whole[after.start : before.end]
        assert OVERLAP <= len(list(spans(shared))) <= OVERLAP + 16
        assert after.start == 0 or whole[after.start - 1].isspace()


def test_a_section_of_exactly_as_many_tokens_as_a_row_may_have_is_one_row() -> None:
    fits = "# H\n\n" + "a " * (TOKENS - 2)
    over = fits + "a"

    assert [part.tokens for part in cut(fits).parts] == [TOKENS]
    assert len(cut(over).parts) == 2


def test_the_builtin_tokenizer_counts_what_the_model_would_read() -> None:
    (part,) = make(b"# Unbelievable tokenization\n", BUILTIN).parts

    assert part.tokens == len(["#", "unbelievable", "token", "##ization"])


def test_the_measure_is_named_apart_for_each_kind_of_embedder() -> None:
    assert measure.name("builtin") != measure.name("endpoint") == measure.name("fastembed")


def test_a_row_ends_with_a_paragraph_rather_than_inside_one() -> None:
    paragraphs = "\n\n".join("word " * 39 + "end." for _ in range(40))
    parts = cut(f"# H\n\n{paragraphs}").parts

    assert len(parts) > 2
    assert all(part.content.endswith("end.") for part in parts)


def test_the_cut_does_not_depend_on_what_the_file_is_called() -> None:
    assert "path" not in Part.__struct_fields__


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"# fine\n", True),
        (b"", True),
        ("caf\xe9 au lait, beaucoup de texte".encode("latin-1"), True),
        ("# Grüße\n".encode("utf-16"), True),
        ("# Hello there, plain\n".encode("utf-16-le"), True),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", False),
        (b"\x7fELF\x02\x01\x01" + bytes(60), False),
        (bytes(range(128, 256)) * 4, False),
        ("привет, мир".encode("cp1251"), False),
        (b"text with one \0 zero", False),
    ],
)
def test_what_is_text(data: bytes, expected: bool) -> None:
    assert is_text(data) is expected


def test_damaged_characters_are_noted() -> None:
    taken = cut("caf\xe9 au lait, beaucoup de texte".encode("latin-1"))

    assert taken.notes == ("invalid_utf8",)
    assert "\ufffd" in taken.parts[0].content


def test_a_file_without_text_has_no_rows() -> None:
    assert cut("").parts == cut(" \n\n\t\n").parts == cut("---\ntitle: x\n---\n").parts == ()


def seconds(data: bytes, spans) -> tuple[Sectioned, float]:
    begun = time.process_time()
    return make(data, spans), time.process_time() - begun


@pytest.mark.parametrize("spans", [BY_RULE, BUILTIN], ids=["by rule", "builtin"])
@pytest.mark.parametrize(
    "line",
    [
        b"x",
        b"words in a row that never ends, ",
        b"- ",
        b"#",
        b"`",
        b"<!--",
        b"[a](b)",
        "\u4e2d".encode(),
        b"\t ",
        b"===",
        b"\0",
    ],
)
def test_one_endless_line_is_cut_in_time_linear_in_its_length(line: bytes, spans) -> None:
    small, large = line * (100_000 // len(line)), line * (400_000 // len(line))
    seconds(small, spans)
    _, one = seconds(small, spans)
    taken, four = seconds(large, spans)

    assert four < 16 * max(one, 0.02)
    assert all(part.first == part.last == 1 and len(part.content) <= 32 * TOKENS for part in taken.parts)


@pytest.mark.long
def test_ten_megabytes_on_one_line_are_cut_within_bounded_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = make(b"# T\n" + b"the quick brown fox jumps over the lazy dog, " * 230_000, BUILTIN)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / (1 if sys.platform == "darwin" else 1024)

    assert 4_000 < len(taken.parts) < 8_000
    assert grown < 300  # MB


def test_a_hundred_thousand_headings_give_bounded_rows_and_lose_no_line() -> None:
    text = "".join(f"# heading {n}\n\nline {n}\n\n" for n in range(100_000))
    taken, took = seconds(text.encode(), BY_RULE)

    assert took < 60
    assert "too_many_headings" in taken.notes
    assert len({part.anchor for part in taken.parts}) == MAX_SECTIONS
    assert taken.parts[-1].content.endswith("line 99999")
    lines = {n for part in taken.parts for n in range(part.first, part.last + 1)}
    assert len(lines) > 399_000 - 2 * MAX_SECTIONS


def test_equal_headings_by_the_thousand_get_anchors_of_their_own() -> None:
    anchors = Anchors()
    given = [anchors.of(name) for name in ["a"] * 5_000 + [f"a-{n}" for n in range(5_000)] + ["a"] * 5_000]

    assert len(set(given)) == 15_000


@pytest.mark.parametrize(
    ("heading", "anchor"), [("Why? Because!", "why-because"), ("数据 库", "数据-库"), ("!!!", "section")]
)
def test_anchors_are_those_of_code_hosts(heading: str, anchor: str) -> None:
    assert Anchors().of(heading) == anchor


def test_what_is_embedded_is_the_path_and_the_text_without_markup() -> None:
    content = "## Install\n\nRun `make` and see [the log](log.txt).\n\n```sh\nmake all\n```"

    def short(*said: object) -> str:
        (only,) = passage.windows(*said, 0)
        return only

    assert short("Guide", ("Guide", "Install"), content, 1) == "Guide > Install. Run make and see the log. make all"
    assert short("Book", ("Guide", "Install"), content, 1).startswith("Book > Guide > Install. Run")
    assert short("", (), "Just text.", 1) == "Just text."
    assert short("", ("Sub",), "Sub\n---\n\nBody.", 1) == "Sub. Body."
    assert short("", ("Sub",), "goes on here.", 2) == "Sub. goes on here."
    assert short("", (), "***", 1) == "***"
    assert short("", ("Bare",), "## Bare", 1) == "Bare"
    assert (
        short("", ("x" * 200, "y" * 150), "Text.", 2)
        == f"{('x' * 200 + ' > ' + 'y' * 150)[-passage.PATH_CHARS :]}. Text."
    )


@pytest.mark.parametrize("length", [1, 99, 100, 101, 250, 1_000])
def test_a_model_that_reads_little_is_given_a_row_in_stretches_that_lose_no_word(length: int) -> None:
    words = [f"w{n}" for n in range(length)]
    stretches = passage.windows("", ("Head",), " ".join(words), 2, 100)

    assert [word for stretch in stretches for word in stretch.removeprefix("Head. ").split()] == words
    assert all(stretch.startswith("Head. ") and len(stretch) <= 100 + 40 + len("Head. ") for stretch in stretches)
    assert len(stretches) == -(-len(" ".join(words)) // 100)


markdown = st.lists(
    st.sampled_from(
        [
            *("# a", "## b", "### c `d`", "a", "===", "---", "```", "~~~", "", " ", "text", "<!--", "-->", "<pre>"),
            *("</pre>", "---\ntitle: x", "- ```", "    # code", "\t", "# ", "\r", "word " * 300, "x" * 3_000),
        ]
    ),
    max_size=30,
).map("\n".join)


@given(markdown, st.booleans())
@settings(max_examples=150, deadline=None)
def test_rows_of_any_text_stand_where_they_say_and_leave_no_text_out(text: str, builtin: bool) -> None:
    taken = make(text.encode(), BUILTIN if builtin else BY_RULE)
    lines = decode(text.encode()).text.split("\n")
    seen: set[int] = set()
    for part in taken.parts:
        section = "\n".join(lines[part.top - 1 : part.bottom])
        assert part.content == section[part.start : part.end]
        assert part.top <= part.first <= part.last <= part.bottom
        assert part.first == part.top + section.count("\n", 0, part.start)
        assert part.last == part.top + section.count("\n", 0, part.end)
        assert part.tokens <= TOKENS
        seen |= set(range(part.first, part.last + 1))
    shape = outline(decode(text.encode()).text)
    skipped = len(shape.front.split("\n")) + 2 if shape.fence else 0
    bare = {n for item in shape.sections if item.bare for n in range(item.first, item.last + 1)}
    left_out = [
        n for n, line in enumerate(lines, 1) if line.strip() and n not in seen and n not in bare and n > skipped
    ]
    assert left_out == []


@given(st.binary(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_cut_or_refused_and_never_raise(data: bytes) -> None:
    is_text(data)
    make(data, BY_RULE)
