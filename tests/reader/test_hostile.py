"""The reader on hostile input: bounded work, no object made, no process killed, and name and description all the same."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from pipeline.reader import read_skill, tree
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = "---\nname: reef-knot\ndescription: Ties ropes.\n"


def bomb(levels: int) -> str:
    lists = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(["a0: &a0 [x, x, x]", *lists])


def merging_bomb(levels: int) -> str:
    base = "a0: &a0 {" + ", ".join(f"k{number}: v" for number in range(500)) + "}"
    merged = [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}" for level in range(1, levels)]
    return "\n".join([base, *merged])


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(bomb(12) + "\ntags: [*a11]", id="billion laughs"),
        pytest.param(bomb(12) + "\ntags: *a11\nmetadata: {kit: {tags: *a11}}", id="billion laughs as tags"),
        pytest.param(merging_bomb(12), id="billion merges"),
        pytest.param("x: &x [*x]", id="a list that holds itself"),
        pytest.param("x: &x {<<: *x}", id="a mapping that merges itself"),
        pytest.param(
            f"x: [{', '.join(f'&a{n} 1' for n in range(300))}, {', '.join(f'*a{n}' for n in range(300))}]",
            id="many aliases",
        ),
        pytest.param("x: " + "[" * 3_000 + "]" * 3_000, id="3,000 flow lists"),
        pytest.param("x: " + "{a: " * 3_000 + "}" * 3_000, id="3,000 flow mappings"),
        pytest.param("x: " + "[" * 60_000, id="60,000 open brackets"),
        pytest.param("x:\n" + "".join(" " * depth + "a:\n" for depth in range(1, 300)), id="300 block mappings"),
        pytest.param("x:\n " + "- " * 20_000 + "a", id="20,000 block lists"),
        pytest.param("\n".join("? [a]" for _ in range(3_000)), id="3,000 odd keys"),
        pytest.param("x: !!python/object/apply:os.abort []", id="a call"),
        pytest.param("x: !!python/name:os.abort ''", id="a name"),
        pytest.param("x: !<tag:yaml.org,2002:python/object/new:os.abort> {}", id="a verbatim tag"),
        pytest.param("x: " + "a" * 200_000, id="a long value"),
        pytest.param("\n".join(f"key{number}: value" for number in range(20_000)), id="20,000 keys"),
    ],
)
def test_bad_data_in_one_entry_costs_only_that_entry(lines: str) -> None:
    reading = read_skill(f"{KEYS}{lines}\n---\n\n# Knots\n\nText.\n".encode(), "reef-knot")

    assert (reading.name, reading.description, reading.tags) == ("reef-knot", "Ties ropes.", ())
    assert reading.diagnostics == ("yaml_error",)
    assert reading.headings == ("Knots",)


def test_3000_nested_block_mappings_are_refused_without_recursion() -> None:
    nested = "".join(" " * depth + "a:\n" for depth in range(3_000))
    reading = read_skill(f"{KEYS}{nested}---\nText.\n".encode(), "reef-knot")

    assert (reading.name, reading.description) == ("reef-knot", "Ties ropes.")


def test_nesting_as_deep_as_anything_can_be_does_not_kill_the_process() -> None:
    code = (
        "from pipeline.reader import read_skill\n"
        "for deep in ('[' * 10**6, '{a: ' * 10**5, '- ' * 10**6, '> ' * 10**6, '\\n'.join(' ' * n + 'a:' for n in range(2000))):\n"
        "    for text in (f'---\\nname: a\\nx: {deep}\\n---\\n', f'---\\n{deep}\\n---\\n', deep):\n"
        "        read_skill(text.encode(), 'a')\n"
        "print('alive')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False, encoding="utf-8")

    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def test_an_alias_counts_as_much_as_what_it_stands_for() -> None:
    with pytest.raises(tree.TreeError, match="too much data"):
        tree.load(bomb(12))


def test_a_call_in_yaml_is_never_made() -> None:
    reading = read_skill(b"---\nname: a\ndescription: !!python/object/apply:os.getcwd []\n---\n\nText.\n", "a")

    assert reading.description == "Text."
    assert set(reading.diagnostics) == {"yaml_error", "description_not_string"}


def test_a_bomb_in_the_description_itself_falls_back_to_the_body() -> None:
    reading = read_skill(f"---\nname: a\n{bomb(12)}\ndescription: !!set {{*a11 : }}\n---\n\nText.\n".encode(), "a")

    assert reading.description == "Text."


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(KEYS + "---\n" + "Long prose. " * 90_000, id="prose"),
        pytest.param(KEYS + "---\n" + "x" * 1_000_000, id="one word"),
        pytest.param(KEYS + "---\n" + "# Heading\n\nText.\n\n" * 60_000, id="headings"),
        pytest.param(KEYS + "---\n" + "```\n" * 250_000, id="code fences"),
        pytest.param("\n" * 500_000 + KEYS + "---\n" + "\n" * 500_000 + "Text.", id="newlines"),
        pytest.param(KEYS + "license: " + "x" * 1_000_000 + "\n---\nText.\n", id="frontmatter"),
    ],
)
def test_a_file_of_one_megabyte_is_read(text: str) -> None:
    data = text.encode()
    tracemalloc.start()
    try:
        reading = read_skill(data, "reef-knot")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(data) >= 1_000_000
    assert (reading.name, reading.description) == ("reef-knot", "Ties ropes.")
    assert peak < 60 * len(data)


MEGABYTE = 1_000_000
# Where a pattern tried anew at each character would take 10 ** 12 steps, so that the test would never end.
PROBES = {
    "spaces in a heading": "# a" + " " * MEGABYTE + "b",
    "spaces before a heading": " " * MEGABYTE + "# a",
    "tabs in a line": "a" + "\t" * MEGABYTE + "b",
    "hashes after a heading": "# a " + "#" * MEGABYTE + "b",
    "hashes and spaces": "# a" + " #" * (MEGABYTE // 2) + "b",
    "an underline that is none": "a\n" + "=" * MEGABYTE + "b",
    "a rule that is none": "- " * (MEGABYTE // 2) + "b",
    "dashes": "-" * MEGABYTE + "b",
    "back-ticks": "`" * MEGABYTE + "b",
    "quotation marks": ">" * MEGABYTE + "b",
    "open pictures": "![](" * (MEGABYTE // 4),
    "nested brackets": "[![" * (MEGABYTE // 3),
    "open tags": "<a " * (MEGABYTE // 3),
    "tags": "<a>" * (MEGABYTE // 3) + "b",
    "open comments": "<!--" * (MEGABYTE // 4),
    "digits": "1" * MEGABYTE + ". a",
    "carriage returns": "\r" * MEGABYTE + "b",
    "controls": "\0\x1b" * (MEGABYTE // 2) + "b",
    "byte order marks": "\ufeff" * (MEGABYTE // 3) + "b",
    "braces": "{{" * (MEGABYTE // 2) + "b",
}


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize(
    "frame",
    [
        "{}",
        KEYS + "---\n{}",
        KEYS + "x: {}\n---\n",
        "---\nname: a\ndescription: a: {}\n---\n",
        "---\nname: '{}'\n---\n",
    ],
)
def test_a_megabyte_of_one_thing_is_read_wherever_it_stands(frame: str, probe: str) -> None:
    reading = read_skill(frame.replace("{}", PROBES[probe]).encode(), "reef-knot")

    assert reading.name
    assert len(reading.description) <= 4_000
    assert len(reading.head) <= 4_000


def steps(action: Callable[[], object]) -> int:
    """Lines and calls that Python executes for `action`: the same on every machine and at every load."""
    count = 0

    def trace(*_: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


GROWING: dict[str, Callable[[int], str]] = {
    "comments before the fence": lambda n: "<!-- x -->\n" * n + KEYS + "---\nText.\n",
    "fences": lambda n: "---\n" * n,
    "fences with keys": lambda n: "---\nname: a\n" * n,
    "keys": lambda n: "---\n" + "k: v\n" * n,
    "comments and blank lines": lambda n: "name: x\n" + "\n#\n" * n,
    "descriptions": lambda n: "---\nname: x\n" + "description: a: b\n" * n + "---\nText.\n",
    "continuations": lambda n: "---\nname: a: b\n" + "  more\n" * n + "---\nText.\n",
    "code fences": lambda n: KEYS + "---\n" + "```\n" * n,
    "open comments": lambda n: "<!-- " * n,
    "underlines": lambda n: KEYS + "---\n" + "x\n===\n" * n,
    "anchors": lambda n: "---\n" + "".join(f"a{i}: &b{i} x\n" for i in range(n)) + "---\n",
}


@pytest.mark.parametrize("shape", GROWING)
def test_the_steps_taken_grow_no_faster_than_the_text(shape: str) -> None:
    def taken(size: int) -> int:
        data = GROWING[shape](size).encode()
        return steps(lambda: read_skill(data, "a"))

    read_skill(b"a", "a")  # imports are not counted
    small, large = taken(400), taken(1_600)

    assert large < 5 * small
