"""`search`: one query or a stream of them, narrowed, explained, and never answered by silence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.support import ROOT
from tests.world import COMMAND, World


def names(answer: Any) -> list[str]:
    return [row["name"] for row in answer["results"]]


@pytest.mark.requirement("R108", "R210", "R217")
def test_an_answer_has_rows_lanes_generation_and_age(library: World, command: Command) -> None:
    answer = command(library, "search", "my", "database", "query", "is", "slow", "--limit", "2", "--json").json

    assert answer["query"] == "my database query is slow"
    assert answer["lanes"] == {"semantic": {"used": True, "reason": ""}, "lexical": {"used": True, "reason": ""}}
    assert answer["generation"] == library.generation
    assert answer["skills"] == 5
    assert answer["age_seconds"] >= 0
    assert len(answer["results"]) == 2
    first = answer["results"][0]
    assert {key: first[key] for key in ("id", "name", "source", "state", "categories", "tags", "duplicates")} == {
        "id": "main:sql-tuning",
        "name": "sql-tuning",
        "source": "main",
        "state": "cold",
        "categories": ["data", "databases"],
        "tags": [],
        "duplicates": ["side:copy"],
    }
    assert first["description"] == "Tune slow SQL queries with indexes. Use when a database query takes too long."
    assert first["base_score"] > 0 < first["lexical_score"]
    assert first["path"] == str(library.lib("main") / "sql-tuning" / "SKILL.md")
    assert set(first["ranks"]) == set(first["scores"]) == {"semantic", "lexical"}
    assert first["score"] > answer["results"][1]["score"]


def test_text_shows_a_block_a_skill_and_where_the_answer_comes_from(library: World, command: Command) -> None:
    ended = command(library, "search", "slow sql query", "--limit", "1")

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines[0].startswith("1. sql-tuning  [cold]  ")
    assert ended.lines[1:4] == [
        "   main:sql-tuning",
        "   Tune slow SQL queries with indexes. Use when a database query takes too long.",
        "   data, databases; also: side:copy",
    ]
    assert ended.lines[4].startswith(f"1 of 5 skills, index {library.generation[:8]}, ")
    assert ended.lines[4].endswith(" old")


def test_explain_shows_shares_that_add_up_to_the_score(library: World, command: Command) -> None:
    row = command(library, "search", "slow sql query", "--explain", "--json").json["results"][0]
    text = command(library, "search", "slow sql query", "--explain", "--limit", "1").out

    assert row["terms"]
    assert sum(row["shares"].values()) == pytest.approx(row["base_score"], abs=1e-4)
    assert sum(map(float, re.findall(r"adds ([0-9.]+)", text))) == pytest.approx(row["score"], abs=1e-3)
    for said in (
        "semantic: rank ",
        "lexical: rank ",
        "query words in name, description and tags: ",
        "terms: ",
        "path: ",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--source", "side"], {"index-advice"}),
        (
            ["--source", "side", "--source", "main"],
            {"index-advice", "sql-tuning", "csv-cleaning", "pod-audit", "release-notes"},
        ),
        (["--category", "databases"], {"index-advice", "sql-tuning"}),
        (["--category", "databases", "--source", "main"], {"sql-tuning"}),
        (["--state", "cold"], {"index-advice", "sql-tuning", "csv-cleaning", "pod-audit", "release-notes"}),
        (["--harness", "omp"], {"index-advice", "sql-tuning", "csv-cleaning", "pod-audit"}),
        (["--harness", "claude"], {"index-advice", "sql-tuning", "csv-cleaning", "pod-audit", "release-notes"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_filters_narrow_the_answer(filters: list[str], expected: set[str], library: World, command: Command) -> None:
    assert set(names(command(library, "search", "database", *filters, "--json").json)) <= expected
    found = command(library, "search", "a skill of any kind for data, pods, notes", *filters, "--json").json
    assert set(names(found)) == expected


def test_a_value_that_no_skill_has_is_an_error_that_names_those_there_are(library: World, command: Command) -> None:
    ended = command(library, "search", "x", "--source", "nobody")

    assert ended.code == 2
    assert ended.err == "error: no indexed skill has the source `nobody`\n  next: use one of: main, side\n"


def test_skills_that_are_not_indexed_are_in_no_answer(library: World, command: Command) -> None:
    found = command(library, "search", "does the thing, see below", "--limit", "200", "--json").json

    assert not {"main:nothing", "side:copy", "own:release-notes", "main:broken"} & {
        row["id"] for row in found["results"]
    }


def test_a_lane_that_cannot_take_part_says_why(library: World, command: Command) -> None:
    other = {"RETRIEVAL_EMBEDDING_QUERY_PREFIX": "query: "}

    answer = command(library, "search", "slow sql query", "--json", **other)
    text = command(library, "search", "slow sql query", **other)

    lane = answer.json["lanes"]["semantic"]
    assert answer.code == text.code == 0
    assert lane["used"] is False
    assert lane["reason"]
    assert names(answer.json)[0] == "sql-tuning"
    assert text.lines[0] == f"without the semantic lane: {lane['reason']}"


@pytest.mark.requirement("R116")
def test_a_search_reads_the_index_and_not_the_sources(library: World, command: Command) -> None:
    assert "sql-tuning" in names(command(library, "search", "sql", "--json").json)
    away = library.root / "away"
    library.lib("main").rename(away)
    try:
        library.config.rename(library.root / "sources.away")
        ended = command(library.root, "search", "sql", "--json", RETRIEVAL_HOME=str(library.data))
    finally:
        away.rename(library.lib("main"))
        (library.root / "sources.away").rename(library.config)

    assert ended.code == 0
    assert "sql-tuning" in names(ended.json)


LINES = [
    b"slow sql query\n",
    b'{"query": "audit pods", "limit": 1}\n',
    b"\n",
    b'{"query": "sql", "source": "side", "explain": true}\n',
    b'{"query": "sql", "category": ["databases"], "state": ["cold"]}\r\n',
    b'{"query": "sql", "source": "nobody"}\n',
    b'{"query": "sql", "sauce": "side"}\n',
    b'{"query": 7}\n',
    b'{"query": "sql", "limit": "many"}\n',
    b'{"query": "sql", "harness": "nobody"}\n',
    b'{"query": "half an obj\n',
    b'{"query": ' + b"[" * 100_000 + b"\n",
    b"\xff\xfe not text\n",
    b"x" * 1_100_000 + b"\n",
    b"x" * 30_000 + b"\n",
    "\u65e5\u672c\u8a9e\n".encode(),
    b"the last line has no end",
]


def test_a_stream_answers_line_by_line_in_order(library: World, command: Command) -> None:
    ended = command(library, "search", "--stdin", "--limit", "3", stdin=b"".join(LINES))

    answers = [json.loads(line) for line in ended.lines]
    assert (ended.code, ended.err) == (1, "")
    assert len(answers) == len(LINES)
    assert [answer.get("query") or answer["error"] for answer in answers] == [
        "slow sql query",
        "audit pods",
        "the query is empty",
        "sql",
        "sql",
        "no indexed skill has the source `nobody`",
        "a query has no field `sauce`",
        "a JSON query needs a text field `query`",
        answers[8]["error"],
        "there is no harness `nobody`",
        "the line begins like a JSON object and is none",
        "the line begins like a JSON object and is none",
        "the line is not UTF-8",
        "the line is too long",
        "the query has 30000 characters",
        "\u65e5\u672c\u8a9e",
        "the last line has no end",
    ]
    assert answers[8]["error"].startswith("the query cannot be read: ")
    assert all(answer["next"] and answer["code"] == 2 for answer in answers if "error" in answer)
    assert len(answers[0]["results"]) == 3
    assert names(answers[1]) == ["pod-audit"]
    assert [row["source"] for row in answers[3]["results"]] == ["side"]
    assert "terms" in answers[3]["results"][0]
    assert names(answers[4]) == ["sql-tuning", "index-advice"]


def test_a_stream_of_good_queries_ends_with_0(library: World, command: Command) -> None:
    ended = command(library, "search", "--stdin", stdin=b"\xef\xbb\xbfsql\npods\n")

    assert ended.code == 0
    assert [json.loads(line)["query"] for line in ended.lines] == ["sql", "pods"]


def test_each_answer_of_a_stream_is_there_before_the_next_question(library: World) -> None:
    """The process is asked the second question only when the first is answered: an answer held back would hang here."""
    process = subprocess.Popen(
        [*COMMAND, "search", "--stdin", "--limit", "1"],
        cwd=library.root,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(library.root), **library.environment()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for query, name in (
            ("slow sql query", "sql-tuning"),
            ("audit pods", "pod-audit"),
            ("broken csv", "csv-cleaning"),
        ):
            process.stdin.write(query + "\n")
            process.stdin.flush()
            assert names(json.loads(process.stdout.readline())) == [name]
        process.stdin.close()
    assert process.returncode == 0


def test_a_stream_follows_a_new_index(world: World, command: Command) -> None:
    with subprocess.Popen(
        [sys.executable, *COMMAND[1:], "search", "--stdin"],
        cwd=world.root,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(world.root), **world.environment()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("advice on indexes\n")
        process.stdin.flush()
        before = json.loads(process.stdout.readline())
        world.skill("index-advice", "Advise on database indexes. Use when a table grows.")
        assert command(world, "build").code == 0
        process.stdin.write("advice on indexes\n")
        process.stdin.flush()
        after = json.loads(process.stdout.readline())
        process.stdin.close()

    assert "index-advice" not in names(before)
    assert names(after)[0] == "index-advice"
    assert before["generation"] != after["generation"] == world.generation


def test_a_stream_is_not_mixed_with_a_query(library: World, command: Command) -> None:
    ended = command(library, "search", "x", "--stdin")

    assert ended.code == 2
    assert json.loads(ended.out) == {
        "error": "a query and --stdin exclude each other",
        "where": "",
        "next": "give one of the two",
        "code": 2,
    }


def test_a_stream_without_an_index_tells_so_for_each_line(tmp_path: Path, command: Command) -> None:
    ended = command(World(tmp_path), "search", "--stdin", stdin=b"a\nb\n")

    assert ended.code == 1
    assert [json.loads(line)["error"] for line in ended.lines] == ["there is no index yet"] * 2
