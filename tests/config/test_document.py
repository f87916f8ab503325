"""Mistakes in sources.toml: each is one error with file, line and next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.config.conftest import World

GOOD = '[[sources]]\nname = "library"\npath = "library"\n'


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("a = \n", "1:5", "invalid value"),
        ('a = 1\nb = "x\n', "2:7", "illegal character '\\n'"),
        ("a = 1\na = 2\n", "2:6", "cannot overwrite a value"),
        ("[[sources]]\nname = [1, 2\n", "2:13", "unclosed array"),
        ("[policy]\n\n[policy]\n", "3:8", "cannot declare"),
        ("a = 9" + "9" * 5000, "", "exceeds the limit"),
    ],
)
def test_text_that_is_no_toml_is_told_with_line_and_column(world: World, text: str, where: str, what: str) -> None:
    world.config(text)
    message, place, _ = world.fails()

    assert message.lower().startswith(f"sources.toml is not valid toml: {what}".lower())
    assert place == ("here/sources.toml:" + where if where else "here/sources.toml")


@pytest.mark.parametrize(
    ("content", "what", "where"),
    [
        (b"# ok\nname = 'caf\xe9'\n", "sources.toml is not UTF-8", "here/sources.toml:2"),
        ("a = 1".encode("utf-16"), "sources.toml is not UTF-8", "here/sources.toml:1"),
        (b"#" * 1_100_000, "sources.toml is larger than 1024 KB", "here/sources.toml"),
        (b"a = " + b"[" * 20_000, "sources.toml is nested too deeply", "here/sources.toml"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_one_clear_error(world: World, content: bytes, what: str, where: str) -> None:
    world.config(content)

    assert world.fails()[:2] == (what, where)


def test_a_byte_order_mark_and_carriage_returns_do_no_harm(world: World) -> None:
    world.skills("here/library")
    world.config(b"\xef\xbb\xbf# comment\r\n" + GOOD.replace("\n", "\r\n").encode())
    (source,) = world.load().sources

    assert (source.name, world.short(source.where)) == ("library", "here/sources.toml:2")


@pytest.mark.parametrize(
    ("text", "what", "line", "next_step"),
    [
        ('source = "x"\n', 'the file has an unknown key "source"', 1, 'did you mean "sources"?'),
        ("\n[[source]]\n", 'the file has an unknown key "source"', 2, 'did you mean "sources"?'),
        ("[polcy]\n", 'the file has an unknown key "polcy"', 1, 'did you mean "policy"?'),
        ("zzz = 1\n", 'the file has an unknown key "zzz"', 1, "known are sources, policy"),
        (GOOD + 'stat = "cold"\n', 'a [[sources]] block has an unknown key "stat"', 4, 'did you mean "state"?'),
        (
            GOOD + "\n# x\n  Enabled = true\n",
            'a [[sources]] block has an unknown key "Enabled"',
            6,
            'did you mean "enabled"?',
        ),
        (
            GOOD + "[sources.more]\na = 1\n",
            'a [[sources]] block has an unknown key "more"',
            4,
            "known are name, kind, path, enabled, state, harness, group, profiles, include, exclude",
        ),
        (
            '[policy]\nuncategorised = "index"\n',
            '[policy] has an unknown key "uncategorised"',
            2,
            'did you mean "uncategorized"?',
        ),
        ('[policy]\nuncategorized = "idx"\n', '"uncategorized" is "idx"', 2, 'did you mean "index"?'),
        ("policy = 3\n", '"policy" must be a table, not 3', 1, "write it as [policy]"),
        ("[sources]\n", '"sources" must be an array of tables, not a table', 1, "write [[sources]], with two brackets"),
        (
            'sources = ["x"]\n',
            '"sources" must be an array of tables, not a list',
            1,
            "write [[sources]], with two brackets",
        ),
        (
            GOOD + 'enabled = "yes"\n',
            '"enabled" must be true or false, not the text "yes"',
            4,
            "write true or false without quotes",
        ),
        (GOOD + "state = true\n", '"state" must be a text, not true', 4, "put it in quotes"),
        (GOOD + 'state = "Cold"\n', '"state" is "Cold"', 4, 'did you mean "cold"?'),
        (GOOD + 'state = "zzz"\n', '"state" is "zzz"', 4, "use one of native, hidden, cold, archived"),
        (GOOD + 'harness = "hermess"\n', '"harness" is "hermess"', 4, 'did you mean "hermes"?'),
        (GOOD + 'kind = "skill"\n', '"kind" is "skill"', 4, 'did you mean "skills"?'),
        (GOOD + "include = 5\n", '"include" must be a list of globs, not 5', 4, 'write include = ["…"]'),
        (
            GOOD + 'include = "web/**"\n',
            '"include" must be a list of globs, not the text "web/**"',
            4,
            'write include = ["…"]',
        ),
        (
            GOOD + 'exclude = [\n  "a",\n  7,\n]\n',
            '"exclude" must be a list of texts, not 7',
            6,
            "put each glob in quotes",
        ),
        (
            GOOD + 'exclude = ["a",\n"/b"]\n',
            '"exclude" has a glob that cannot match: "/b"',
            5,
            "write it relative to the source's folder, like web/** or **/drafts",
        ),
        (
            GOOD + 'exclude = ["a/../b"]\n',
            '"exclude" has a glob that cannot match: "a/../b"',
            4,
            "write it relative to the source's folder, like web/** or **/drafts",
        ),
        (
            GOOD + 'exclude = ["a\\u0007"]\n',
            '"exclude" has a glob that cannot match: "a�"',
            4,
            "write it relative to the source's folder, like web/** or **/drafts",
        ),
        (
            GOOD + 'exclude = ["[z-a]"]\n',
            '"exclude" has a glob that cannot match: "[z-a]"',
            4,
            "write it relative to the source's folder, like web/** or **/drafts",
        ),
        ("[[sources]]\npath = 'x'\n", "a [[sources]] block has no name", 1, 'add name = "…"'),
        (
            '[[sources]]\nname = ""\n',
            '"" cannot be the name of a source',
            2,
            "use letters, digits, dots, - and _, a letter or digit first, at most 64 characters",
        ),
        (
            '[[sources]]\nname = "my skills"\n',
            '"my skills" cannot be the name of a source',
            2,
            "use letters, digits, dots, - and _, a letter or digit first, at most 64 characters",
        ),
        (
            '[[sources]]\nname = "../up"\n',
            '"../up" cannot be the name of a source',
            2,
            "use letters, digits, dots, - and _, a letter or digit first, at most 64 characters",
        ),
        (
            f'[[sources]]\nname = "{"x" * 65}"\n',
            f'"{"x" * 65}" cannot be the name of a source',
            2,
            "use letters, digits, dots, - and _, a letter or digit first, at most 64 characters",
        ),
        (
            '[[sources]]\nname = "a"\n',
            'source "a" has no path',
            1,
            'add path = "…"; only harness = "hermes" has a default',
        ),
        (
            '[[sources]]\nname = "a"\nharness = "omp"\n',
            'source "a" has no path',
            1,
            'add path = "…"; only harness = "hermes" has a default',
        ),
        (
            GOOD + "profiles = true\n",
            'source "library" has profiles = true without harness = "hermes"',
            1,
            'add harness = "hermes", or remove profiles',
        ),
        (
            GOOD + '[[sources]]\nname = "b"\n\npath = "$NOPE/x"\n',
            "the path uses NOPE, which is not set",
            7,
            "set NOPE in the environment or in .env, or write ${NOPE:-default}",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(world: World, text: str, what: str, line: int, next_step: str) -> None:
    world.skills("here/library")
    world.config(text)

    assert world.fails() == (what, f"here/sources.toml:{line}", next_step)


@pytest.mark.parametrize("second", ["library", "LIBRARY"])
def test_two_sources_of_one_name_are_told_with_both_lines(world: World, second: str) -> None:
    world.config(GOOD + f'\n[[sources]]\npath = "x"\nname = "{second}"\n')

    assert world.fails() == (
        f'two sources are called "{second}", the other on line 2',
        "here/sources.toml:7",
        "rename one of them; names that differ only in case count as one",
    )


def test_names_that_differ_in_punctuation_are_two_sources(world: World) -> None:
    for name in ("my-skills", "my_skills", "my.skills"):
        world.skills(f"here/{name}")
    world.config(
        "".join(f'[[sources]]\nname = "{name}"\npath = "{name}"\n' for name in ("my-skills", "my_skills", "my.skills"))
    )

    assert [source.name for source in world.load().sources] == ["my-skills", "my_skills", "my.skills"]


def test_a_mistake_in_a_disabled_source_is_still_a_mistake(world: World) -> None:
    world.config(GOOD + "enabled = false\nstatus = 1\n")

    assert world.fails()[:2] == ('a [[sources]] block has an unknown key "status"', "here/sources.toml:5")


def test_more_globs_than_anybody_needs_are_refused(world: World) -> None:
    world.config(GOOD + f"exclude = {['x'] * 257}\n")

    assert world.fails()[0] == '"exclude" has more than 256 globs'


def test_the_first_mistake_in_the_file_is_the_one_that_is_told(world: World) -> None:
    world.config('[[sources]]\nname = "a"\nenabled = 1\n[[sources]]\nname = "b"\nstate = 2\n')

    assert world.fails()[1] == "here/sources.toml:3"


def test_a_terminal_sequence_in_a_key_is_not_shown(world: World) -> None:
    world.config('"\\u001b[31mred" = 1\n')

    assert world.fails()[0] == 'the file has an unknown key "�[31mred"'
