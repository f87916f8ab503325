"""`show` and `why`: everything that is known of a skill, whatever became of it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Command
from tests.world import World

SHOWN = {
    "id", "name", "description", "status", "reason", "next", "source", "state", "harness", "categories", "tags", "path",
    "aliases", "digest", "package_digest", "files", "bytes", "diagnostics", "duplicates", "winner", "native_in", "hidden_in",
}  # fmt: skip


def test_show_gives_all_fields_of_an_indexed_skill(library: World, command: Command) -> None:
    shown = command(library, "show", "main:pod-audit", "--json").json

    path = library.lib("main") / "pod-audit" / "SKILL.md"
    assert shown.keys() == SHOWN
    assert {key: shown[key] for key in ("status", "reason", "source", "state", "path", "files", "categories")} == {
        "status": "indexed",
        "reason": "",
        "source": "main",
        "state": "cold",
        "path": str(path),
        "files": 1,
        "categories": ["containers-kubernetes"],
    }
    assert shown["bytes"] == path.stat().st_size + path.with_name("notes.md").stat().st_size
    assert len(shown["digest"]) == len(shown["package_digest"]) == 32


def test_show_prints_a_line_a_field_and_leaves_out_what_is_empty(library: World, command: Command) -> None:
    ended = command(library, "show", "main:sql-tuning")

    fields = dict(line.split(maxsplit=1) for line in ended.lines if not line.startswith("package"))
    assert fields["id"] == "main:sql-tuning"
    assert fields["duplicates"] == "side:copy"
    assert "winner" not in fields


@pytest.mark.parametrize(
    ("skill", "status", "reason"),
    [
        ("side:copy", "duplicate", "the same text as main:sql-tuning"),
        ("own:release-notes", "suppressed", "native: the omp harness shows it already"),
        ("main:nothing", "review", "no approved category: add retrieval_categories, an override or a taxonomy keyword"),
        ("main:broken", "problem", "dangling_link: a link to something that does not exist"),
    ],
)
def test_nothing_vanishes_without_a_reason(
    skill: str, status: str, reason: str, library: World, command: Command
) -> None:
    shown = command(library, "show", skill, "--json").json
    reasons = command(library, "why", skill, "--json").json
    text = command(library, "why", skill)

    assert shown.keys() == SHOWN
    assert (shown["status"], shown["reason"]) == (reasons["status"], reasons["reason"]) == (status, reason)
    assert any(f"{status}: {reason}" in line for line in text.lines)
    assert text.code == 0


def test_why_names_the_winner_the_next_step_and_the_harness(library: World, command: Command) -> None:
    assert "winner      main:sql-tuning" in command(library, "why", "side:copy").lines
    assert "next        restore the target, or remove the link" in command(library, "why", "main:broken").lines
    assert "native in   omp" in command(library, "why", "main:release-notes").lines
    assert "duplicates  side:copy" in command(library, "why", "main:sql-tuning").lines


def test_why_names_the_rule_the_keyword_and_the_field(library: World, command: Command) -> None:
    reasons = command(library, "why", "main:release-notes", "--json").json
    lines = command(library, "why", "main:release-notes").lines

    assert {"category": "devops", "rule": "keyword", "keyword": "release notes", "field": "name"} in reasons["evidence"]
    assert any(line.startswith("category    devops by keyword “release notes” in name") for line in lines)


def test_why_of_a_new_skill_lists_every_step(library: World, command: Command) -> None:
    reasons = command(library, "why", "main:csv-cleaning", "--json").json

    assert reasons["changed_input"] == "the skill is new"
    assert [row["step"] for row in reasons["steps"]] == [
        "scan", "categorize", "select", "descriptor", "card", "terms", "embed", "upsert",
    ]  # fmt: skip
    assert all(row["before"] == "" for row in reasons["steps"])
    assert reasons["cut_off"] == ""
    assert reasons["keys"].keys() == {"descriptor", "terms", "embed"}


def why(world: World, command: Command, skill: str = "main:sql-tuning") -> dict[str, object]:
    command(world, "build")
    found: dict[str, object] = command(world, "why", skill, "--json").json
    return found


def test_why_tells_an_edit_from_before_to_after_and_what_it_did_not_reach(world: World, command: Command) -> None:
    before = command(world, "show", "main:sql-tuning", "--json").json["digest"]
    path = world.lib("main") / "sql-tuning" / "SKILL.md"
    path.write_text(path.read_text(encoding="utf-8").replace("twice", "three times"), encoding="utf-8")

    reasons = why(world, command)

    after = command(world, "show", "main:sql-tuning", "--json").json["digest"]
    steps = {row["step"]: row for row in reasons["steps"]}  # type: ignore[attr-defined]
    assert reasons["changed_input"] == "its SKILL.md"
    assert (steps["scan"]["before"][:12], steps["scan"]["after"][:12]) == (before[:12], after[:12])
    assert steps["descriptor"]["computed"] is True
    assert "embed" not in steps
    assert "nothing to do in embed, whose inputs are as before" in str(reasons["cut_off"])
    lines = command(world, "why", "main:sql-tuning").lines
    assert any(line.startswith("  descriptor computed: ") and " → " in line for line in lines)
    assert any(line.startswith("cut off     ") for line in lines)


def test_why_tells_a_bundled_file_apart(world: World, command: Command) -> None:
    (world.lib("main") / "pod-audit" / "notes.md").write_text("other\n", encoding="utf-8")

    assert why(world, command, "main:pod-audit")["changed_input"] == "a bundled file"


def test_why_tells_a_change_that_came_from_elsewhere(world: World, command: Command) -> None:
    world.overrides.write_text('[skills]\n"main:sql-tuning" = ["research"]\n', encoding="utf-8")

    reasons = why(world, command)

    assert (
        reasons["changed_input"]
        == "not its own files, but the vocabulary, the configuration, another skill or the program"
    )
    assert reasons["categories"] == ["research"]
    assert reasons["evidence"] == [{"category": "research", "rule": "override", "keyword": "", "field": ""}]
    assert "category    research by override" in command(world, "why", "main:sql-tuning").lines


def test_a_skill_that_is_gone_is_not_found(world: World, command: Command) -> None:
    path = world.lib("main") / "sql-tuning"
    path.rename(world.root / "away")
    command(world, "build")

    assert command(world, "show", "main:sql-tuning").code == 2


@pytest.mark.parametrize(
    ("asked", "next_step"),
    [
        ("sql-tuning", "did you mean main:sql-tuning?"),
        ("MAIN:SQL-TUNING", "did you mean main:sql-tuning?"),
        ("main:sql-tunin", "did you mean main:sql-tuning?"),
        ("main:", "look for it with `retrieval search`"),
        (":", "look for it with `retrieval search`"),
        ("qqqq:zzzz", "look for it with `retrieval search`"),
        ("main:../../x", "look for it with `retrieval search`"),
    ],
)
def test_an_id_that_no_skill_has_is_answered_with_the_nearest(
    asked: str, next_step: str, library: World, command: Command
) -> None:
    ended = command(library, "show", asked)

    assert ended.code == 2
    assert ended.err == f"error: no skill has the ID `{asked}`\n  next: {next_step}\n"


def test_before_the_first_build_it_says_to_build(tmp_path: object, command: Command, world: World) -> None:
    fresh = World(world.root / "fresh")
    fresh.library()

    assert command(fresh, "why", "main:sql-tuning").err.splitlines()[-1] == "  next: run `retrieval build` first"
