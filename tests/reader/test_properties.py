"""What holds for every file, whatever its bytes."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.model import Reading
from pipeline.reader import read_skill

# Pieces of real and broken files, so that random files reach deep into the reader.
PIECES = st.sampled_from(
    [
        "---",
        "--- ",
        "-----",
        "...",
        "  ---",
        "\u2014",
        "```yaml",
        "```",
        "~~~",
        "<!-- x",
        "-->",
        "# Heading",
        "#",
        "Title",
        "===",
        "name: reef-knot",
        "Name: Reef",
        "name:",
        "name: [a]",
        "name: {{x}}",
        "description: Ties ropes.",
        "description: a: b # c",
        "description: >",
        "description: |",
        'description: "open',
        "description: 'it's'",
        "description: &a x",
        "description: *a",
        "description: !!python/name:os ''",
        "description:no space",
        "description\uff1ax",
        "  indented: yes",
        "\ttabbed: yes",
        "- item",
        "tags: [a, b",
        "tags: a, b",
        "metadata: {kit: {tags: [x]}}",
        "hide: yes",
        "retrieval_categories: a",
        "<<: *a",
        "? [odd]",
        ": x",
        "&a a: b",
        "%YAML 1.2",
        "> quote",
        "| a | b |",
        "![p](q)",
        "Prose goes on.",
        "",
        " ",
        "\x00",
        "\x85",
        "\u2028",
        "\u200d",
        "\ufeff",
        "\U000e0041",
        "\ufffe",
        "{",
        "}",
        "]",
        '"',
        "'",
        "<<<<<<< HEAD",
    ]
)
TEXTS = st.lists(PIECES, max_size=25).flatmap(
    lambda pieces: st.sampled_from(["\n", "\r\n", "\r", " "]).map(lambda joint: joint.join(pieces))
)
FILES = (
    st.binary(max_size=400)
    | TEXTS.map(lambda text: text.encode("utf-8"))
    | TEXTS.map(lambda text: text.encode("utf-16"))
)
FOLDERS = st.text(min_size=1).filter(lambda name: "\x00" not in name)


def check(reading: Reading) -> None:
    for text in (reading.name, reading.description, *reading.tags, *reading.categories, *reading.headings):
        assert text == " ".join(text.split())
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text)
    assert reading.name
    assert len(reading.name) <= 256 or reading.name.isprintable()
    assert len(reading.description) <= 4_000
    assert len(reading.head) <= 4_000
    assert len(reading.headings) <= 64
    assert len(reading.tags) <= 64
    assert len(reading.sketch) <= 64
    assert list(reading.sketch) == sorted(set(reading.sketch))
    assert len(set(reading.diagnostics)) == len(reading.diagnostics)
    assert bool(reading.sketch) == bool(reading.body_chars)


@settings(max_examples=400)
@given(FILES, FOLDERS)
@example(b"\xff\xfe", "a")
@example(b"---\n---", "/")
def test_every_file_is_read_and_has_a_name(data: bytes, folder: str) -> None:
    check(read_skill(data, folder))


@settings(max_examples=200)
@given(TEXTS)
def test_the_line_ends_change_nothing_but_a_diagnostic(text: str) -> None:
    text = text.replace("\r", "").replace("\x00", "")  # zero bytes in the right places would make it UTF-16
    unix = read_skill(text.encode(), "a")
    windows = read_skill(text.replace("\n", "\r\n").encode(), "a")

    assert (windows.name, windows.description, windows.tags, windows.head) == (
        unix.name,
        unix.description,
        unix.tags,
        unix.head,
    )
    assert set(windows.diagnostics) - {"crlf"} == set(unix.diagnostics)


@settings(max_examples=200)
@given(FILES)
def test_reading_twice_gives_the_same(data: bytes) -> None:
    assert read_skill(data, "a") == read_skill(data, "a")


@settings(max_examples=200)
@given(
    st.text(st.characters(categories=("L", "N"), include_characters=" :#'\"-,.!&*[]{}|>%@`"), min_size=1),
    st.sampled_from(["", "tags: [a]\n", "metadata:\n  x: y\n"]),
)
def test_a_description_written_by_yaml_itself_comes_back(description: str, more: str) -> None:
    import yaml

    wanted = " ".join(description.split())
    block = yaml.safe_dump({"name": "a", "description": wanted}, allow_unicode=True, sort_keys=False)
    reading = read_skill(f"---\n{block}{more}---\n\nBody.\n".encode(), "a")

    assert reading.description == (wanted or "Body.")
