"""The reader on bytes: encodings, line ends, control characters, empty files."""

from __future__ import annotations

import codecs

import pytest

from pipeline.reader import read_skill

TEXT = "---\nname: reef-knot\ndescription: Ties the café's ropes.\n---\n\n# Knots\n\nTie it well.\n"


@pytest.mark.parametrize(
    ("data", "diagnostics"),
    [
        pytest.param(TEXT.encode(), (), id="UTF-8"),
        pytest.param(codecs.BOM_UTF8 + TEXT.encode(), ("bom",), id="UTF-8 with a mark"),
        pytest.param(codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), ("utf16",), id="UTF-16 LE"),
        pytest.param(codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), ("utf16",), id="UTF-16 BE"),
        pytest.param(TEXT.encode("utf-16-le"), ("utf16",), id="UTF-16 LE without a mark"),
        pytest.param(TEXT.encode("utf-16-be"), ("utf16",), id="UTF-16 BE without a mark"),
        pytest.param(codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"), ("utf32",), id="UTF-32 LE"),
        pytest.param(codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"), ("utf32",), id="UTF-32 BE"),
        pytest.param(
            codecs.BOM_UTF16_LE + TEXT.replace("\n", "\r\n").encode("utf-16-le"),
            ("utf16", "crlf"),
            id="UTF-16 with CR LF",
        ),
        pytest.param(TEXT.replace("\n", "\r\n").encode(), ("crlf",), id="CR LF"),
        pytest.param(TEXT.replace("\n", "\r\n", 3).encode(), ("crlf",), id="CR LF in part"),
        pytest.param(TEXT.replace("\n", "\r\r\n").encode(), ("crlf",), id="CR CR LF"),
        pytest.param(TEXT.replace("\n", "\r").encode(), ("lone_cr",), id="CR alone"),
        pytest.param(TEXT.replace("well", "w\x00el\x1bl\x7f").encode(), ("control_chars",), id="controls in the body"),
        pytest.param(
            TEXT.replace("name", "na\x00me").encode(), ("control_chars", "yaml_error"), id="NUL in the frontmatter"
        ),
        pytest.param(TEXT.replace("ropes", "ro\x9bpes").encode(), ("control_chars", "yaml_error"), id="a C1 control"),
        pytest.param(
            TEXT.replace("ropes", "ro\x85pes").encode(), ("control_chars",), id="the one C1 control that YAML allows"
        ),
        pytest.param(b"\0" * 9 + TEXT.encode(), ("control_chars",), id="NULs before everything"),
    ],
)
def test_any_encoding_and_line_end_gives_the_same_skill(data: bytes, diagnostics: tuple[str, ...]) -> None:
    reading = read_skill(data, "reef-knot")

    assert (reading.name, reading.description) == ("reef-knot", "Ties the café's ropes.")
    assert reading.headings == ("Knots",)
    assert reading.head == "# Knots\n\nTie it well."
    assert reading.diagnostics == diagnostics


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    reading = read_skill(TEXT.encode("latin-1"), "reef-knot")

    assert reading.description == "Ties the caf\ufffd's ropes."
    assert reading.diagnostics == ("invalid_utf8",)


def test_windows_line_ends_without_frontmatter_are_no_fault() -> None:
    assert read_skill(b"# Knots\r\n\r\nTies ropes.\r\n", "a").diagnostics == ("no_frontmatter",)


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\t\r\n", codecs.BOM_UTF16_LE, b"\n" * 100_000, b"\0\0\0"])
def test_a_file_without_text_is_empty(data: bytes) -> None:
    reading = read_skill(data, "reef-knot")

    assert (reading.name, reading.description, reading.head, reading.sketch) == ("reef-knot", "", "", ())
    assert "empty_file" in reading.diagnostics


@pytest.mark.parametrize("end", ["---", "---\n", "---\n\n \n"])
def test_frontmatter_without_a_body_says_so(end: str) -> None:
    reading = read_skill(f"---\nname: a\ndescription: b\n{end}".encode(), "a")

    assert (reading.description, reading.body_chars, reading.diagnostics) == ("b", 0, ("empty_body",))


def test_a_picture_called_skill_md_is_read_without_harm() -> None:
    reading = read_skill(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00" + bytes(range(256)) * 40, "logo")

    assert reading.name == "logo"
    assert "invalid_utf8" in reading.diagnostics
