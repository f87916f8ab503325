"""The index follows the files by itself: real watchers, real events, and the same again by polling."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.build.compare import assert_same_index, elsewhere, left_overs
from tests.support import needs, run
from tests.watch.follower import Follower, following, records, until
from tests.world import World

pytestmark = pytest.mark.long

BACKENDS = [
    pytest.param((), id="events"),
    pytest.param(("--poll", "--interval", "0.2"), id="polling", marks=pytest.mark.long),
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, "main", "side")
    made.library()
    return made


@pytest.fixture(params=BACKENDS)
def follower(world: World, request: pytest.FixtureRequest) -> Iterator[Follower]:
    with following(world, *request.param) as started:
        started.settle()
        yield started
        twin = elsewhere(world)
        twin.build()
        assert_same_index(world, twin)
        assert left_overs(world) == []


def skill_file(world: World, name: str = "sql-tuning") -> Path:
    return world.lib("main") / name / "SKILL.md"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.requirement("R077", "R078")
def test_what_is_saved_created_moved_and_deleted_is_followed_at_the_price_of_the_change(follower: Follower) -> None:
    world = follower.world
    with follower.noticing() as edited:
        edit(skill_file(world), "twice", "three times")
    assert edited == {
        **dict.fromkeys(("scan", "categorize", "descriptor", "terms"), (1, 0, 0)),
        **dict.fromkeys(("card", "upsert"), (1, 1, 0)),
    }

    with follower.noticing() as touched:
        os.utime(skill_file(world))
    assert touched == {}

    with follower.noticing() as bundled:
        (world.lib("main") / "pod-audit" / "notes.md").write_text("other notes\n", encoding="utf-8")
    assert bundled == {}

    with follower.noticing() as saved_by_renaming:
        draft = skill_file(world).with_name(".SKILL.md.swp")
        draft.write_text(skill_file(world).read_text(encoding="utf-8").replace("three", "four"), encoding="utf-8")
        draft.replace(skill_file(world))
    assert saved_by_renaming["upsert"] == (1, 1, 0)

    with follower.noticing() as created:
        world.skill("new/folders/deep/below/database-copies")
    assert created["embed"] == (1, 0, 0)
    assert b"main:new/folders/deep/below/database-copies" in records(world)

    with follower.noticing() as moved:
        (world.lib("main") / "new").rename(world.lib("side") / "old")
    assert not moved.keys() & {"scan", "descriptor", "terms", "embed"}
    assert moved["upsert"] == (1, 1, 1)
    assert b"side:old/folders/deep/below/database-copies" in records(world)

    with follower.noticing() as edited_where_it_moved:
        edit(world.lib("side") / "old/folders/deep/below/database-copies/SKILL.md", "twice", "often")
    assert edited_where_it_moved["upsert"] == (1, 1, 0)

    with follower.noticing() as deleted:
        shutil.rmtree(world.lib("side") / "old")
    assert deleted["upsert"] == (0, 0, 1)
    assert "embed" not in deleted


def test_configuration_and_vocabulary_are_followed_like_files_of_skills(follower: Follower) -> None:
    world = follower.world
    with follower.noticing() as remarked:
        world.taxonomy.write_text("# a remark\n" + world.taxonomy.read_text(encoding="utf-8"), encoding="utf-8")
    assert remarked == {}

    with follower.noticing() as keyword:
        text = world.taxonomy.read_text(encoding="utf-8")
        world.taxonomy.write_text(text.replace("keywords = [", 'keywords = ["zzyzx",', 1), encoding="utf-8")
    assert keyword == {"categorize": (4, 0, 0)}

    with follower.noticing() as override:
        world.overrides.write_text('[skills]\n"main:sql-tuning" = ["media"]\n', encoding="utf-8")
    assert override["categorize"] == (1, 0, 0)
    assert override["card"] == (1, 1, 0)

    with follower.noticing() as withdrawn:
        world.overrides.unlink()
    assert "categorize" not in withdrawn
    assert withdrawn["card"] == (1, 1, 0)

    with follower.noticing() as other_state:
        edit(world.config, '"cold"', '"archived"')
    assert other_state == {"card": (4, 4, 0), "upsert": (4, 4, 0)}

    with follower.noticing() as prefixed:
        (world.root / ".env").write_text('RETRIEVAL_EMBEDDING_PASSAGE_PREFIX="passage: "\n', encoding="utf-8")
    assert prefixed["embed"] == (4, 0, 0)
    with follower.noticing():
        (world.root / ".env").unlink()


def test_sources_come_and_go_with_the_configuration_and_with_their_folders(follower: Follower) -> None:
    world = follower.world
    world.sources.append("late")
    with follower.noticing():
        world.configure()
    assert follower.state["sources"] == 3

    with follower.noticing():  # its folder did not exist until now
        world.skill("deep/release-notes", source="late")
    assert b'"late:deep/release-notes"' in records(world)

    with follower.noticing():
        edit(world.lib("late") / "deep/release-notes/SKILL.md", "twice", "often")
    world.sources.remove("main")
    with follower.noticing() as gone:
        world.configure()
    assert gone["upsert"] == (0, 0, 4)
    assert b"main:" not in records(world)


def test_a_root_that_is_taken_away_and_made_anew_is_followed_further(follower: Follower) -> None:
    world = follower.world
    with follower.noticing():
        world.lib("main").rename(world.root / "away")
    assert b"main:sql-tuning" in records(world)  # a folder that is away was not emptied

    with follower.noticing():
        world.skill("sql-tuning", body="# SQL\n\nA database query, written anew. " * 9)
    assert b"main:pod-audit" not in records(world)

    with follower.noticing() as edited:
        edit(skill_file(world), "written anew", "written once more")
    assert edited["upsert"] == (1, 1, 0)


def test_what_links_lead_to_is_followed(world: World) -> None:
    real = world.root / "real" / "library"
    shutil.copytree(world.lib("main"), real)
    shutil.rmtree(world.lib("main"))
    world.lib("main").symlink_to(real, target_is_directory=True)
    text = real / "texts" / "linked.md"
    text.parent.mkdir()
    shutil.copy(real / "sql-tuning" / "SKILL.md", text)
    edit(text, "sql-tuning", "linked-tuning")
    (real / "by-link").mkdir()
    (real / "by-link" / "SKILL.md").symlink_to(text)
    with following(world) as follower:
        follower.settle()
        assert b"main:by-link" in records(world)
        with follower.noticing() as edited:
            edit(text, "twice", "three times")
        assert edited["upsert"] == (1, 1, 0)

        other = world.root / "real" / "other"
        shutil.copytree(real / "pod-audit", other / "pod-audit")
        turned = world.root / "turned"
        turned.symlink_to(other, target_is_directory=True)
        with follower.noticing():
            turned.replace(world.lib("main"))
        assert b"main:by-link" not in records(world)
        assert b"main:pod-audit" in records(world)


def test_a_configuration_that_breaks_leaves_the_last_good_one_in_force(world: World) -> None:
    with following(world) as follower:
        follower.settle()
        good, before = world.config.read_text(encoding="utf-8"), world.generation
        with follower.noticing():
            world.config.write_text("[[sources]\n", encoding="utf-8")
        assert "not valid TOML" in follower.state["config_problem"]["error"]
        assert world.generation == before

        with follower.noticing() as edited:
            edit(skill_file(world), "twice", "three times")
        assert edited["upsert"] == (1, 1, 0)

        with follower.noticing():
            world.config.write_text(good, encoding="utf-8")
        assert follower.state["config_problem"] is None


def test_a_vocabulary_that_breaks_is_reported_until_it_is_mended(world: World) -> None:
    with following(world) as follower:
        follower.settle()
        good, before = world.taxonomy.read_text(encoding="utf-8"), world.generation
        world.taxonomy.write_text("[[categories]\n", encoding="utf-8")
        follower.wait(lambda state: state["problem"], "the problem is reported")
        assert world.generation == before
        told = world.json("status", code=3)
        assert any("the watcher cannot build: not valid TOML" in warning["warning"] for warning in told["warnings"])

        world.taxonomy.write_text(good, encoding="utf-8")
        follower.wait(lambda state: state["problem"] is None and state["settled"], "the problem is gone")


def test_a_checkout_of_two_thousand_files_is_one_build(world: World) -> None:
    git = [needs("git"), "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", world.lib("main")]
    world.policy = "index"
    world.configure()
    for args in (["init", "-q", "-b", "one"], ["add", "."], ["commit", "-qm", "one"], ["checkout", "-qb", "two"]):
        assert run([*git, *args]).returncode == 0
    for number in range(10):
        notes = {f"notes/{part}.md": f"{number} {part}\n" for part in range(200)}
        world.skill(f"topic-{number}", files=notes)
    for args in (["add", "."], ["commit", "-qm", "two"], ["checkout", "-q", "one"]):
        assert run([*git, *args]).returncode == 0
    with following(world) as follower:
        follower.settle()
        before = follower.said.count("published")
        with follower.noticing():
            assert run([*git, "checkout", "-q", "two"]).returncode == 0
        assert follower.said.count("published") == before + 1
        assert records(world).count(b'"main:topic-') == 10


@pytest.mark.parametrize("arguments", BACKENDS)
def test_its_own_output_is_not_followed_even_where_a_link_leads_to_it(world: World, arguments: tuple[str, ...]) -> None:
    (world.lib("main") / "peek").symlink_to(world.data, target_is_directory=True)
    (world.lib("main") / "look").symlink_to(world.data / "watcher.json")
    with following(world, *arguments) as follower:
        follower.settle()
        with follower.noticing():
            edit(skill_file(world), "twice", "three times")
        state = follower.settle()
        assert state["events"] <= 4
        assert "data" not in state["last_event"]["path"]
        assert "peek" not in state["last_event"]["path"]


def test_profiles_of_hermes_that_appear_are_followed(world: World) -> None:
    home = world.root / "hermes"
    home.mkdir()
    block = f'\n[[sources]]\nname = "hermes"\nkind = "skills"\nharness = "hermes"\nprofiles = true\npath = "{home}"\n'
    world.config.write_text(world.config.read_text(encoding="utf-8") + block, encoding="utf-8")
    with following(world) as follower:
        follower.settle()
        with follower.noticing():
            target = home / "profiles" / "work" / "skills" / "release-notes" / "SKILL.md"
            target.parent.mkdir(parents=True)
            shutil.copy(skill_file(world, "release-notes"), target)
        until(lambda: follower.settle()["sources"] == 3, "the profile is a source")
        with follower.noticing():
            shutil.copytree(target.parent, home / "skills" / "base-notes")
        assert follower.state["sources"] == 4
