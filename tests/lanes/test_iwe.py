"""The lane of IWE over the real `iwec`: what it finds, that it follows the catalog, and that it leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from serve.cards import card_key
from serve.embedder import EmbedderConfig
from serve.lanes.iwe import IweLane, asked
from serve.lanes.iwec_protocol import Patience
from serve.query import Query
from serve.search import Searcher
from tests.lanes.conftest import PATIENT, answered, current, gone, ids, until
from tests.support import ROOT
from tests.world import World

pytestmark = pytest.mark.long

Lanes = Callable[..., IweLane]

PARENT = """
import sys
from pathlib import Path
from serve.lanes.iwe import IweLane
lane = IweLane(Path(sys.argv[1]), sys.argv[2], 20.0)
lane.start()
while not lane.status()["pid"] or (sys.argv[3] == "ready" and not lane.status()["running"]):
    pass
print(lane.status()["pid"], flush=True)
sys.stdin.read()
if sys.argv[3] == "leaves":
    sys.exit(0)
"""


@pytest.fixture
def world(tmp_path: Path, built: World) -> World:
    """A world of its own to change, built."""
    made = World(tmp_path / "world", "main", "side")
    shutil.copytree(built.data / "models", made.data / "models", copy_function=os.link)
    made.library()
    made.build()
    return made


@pytest.mark.requirement("R003")
def test_an_answer_is_ranked_by_what_iwe_finds_too(built: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", iwec)
    answered(lane, "kubernetes", current(built))
    searcher = Searcher(built.data, EmbedderConfig(), iwe=lane)

    answer = searcher.answer(Query("audit kubernetes pods"))
    searcher.close()

    assert {name: report.used for name, report in answer.lanes.items()} == dict.fromkeys(
        ["semantic", "lexical", "iwe"], True
    )
    first = answer.rows[0]
    assert first.record.id == "main:pod-audit"
    assert first.ranked.lanes["iwe"].rank == 1
    assert first.ranked.lanes["iwe"].share > 0


def test_a_search_that_was_begun_is_answered_while_others_work(built: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", iwec)
    snapshot = current(built)
    answered(lane, "kubernetes", snapshot)

    searches = [lane.begin(query, 5) for query in ("kubernetes", "csv", "\x00")]
    found = [ids(lane.end(search, snapshot), snapshot) for search in reversed(searches)]

    assert found == [[], ["main:csv-cleaning"], ["main:pod-audit"]]


def test_a_skill_is_found_by_the_words_of_its_card(built: World, iwec: Path, lanes: Lanes) -> None:
    snapshot = current(built)

    found = ids(answered(lanes(built.data / "catalog", iwec), "kubernetes", snapshot), snapshot)

    assert found == ["main:pod-audit"]


def test_a_name_typed_in_part_is_found(built: World, iwec: Path, lanes: Lanes) -> None:
    snapshot = current(built)

    found = ids(answered(lanes(built.data / "catalog", iwec), "PodAud", snapshot), snapshot)

    assert found == ["main:pod-audit"]


def test_scores_fall_with_the_rank(built: World, iwec: Path, lanes: Lanes) -> None:
    lane = answered(lanes(built.data / "catalog", iwec), "slow sql database queries", current(built))

    assert lane.hits is not None
    assert lane.hits.scores == pytest.approx([1 / (at + 1) for at in range(len(lane.hits.rows))])
    assert len(lane.hits.rows) > 2


def test_hub_pages_take_no_place_of_a_card(built: World, iwec: Path, lanes: Lanes) -> None:
    snapshot = current(built)
    lane = lanes(built.data / "catalog", iwec)

    assert len(ids(answered(lane, "databases", snapshot, limit=3), snapshot)) == 3
    assert len(ids(answered(lane, "main", snapshot, limit=4), snapshot)) == 4, (
        "by their keys, without the source's page"
    )


def test_the_limit_is_kept(built: World, iwec: Path, lanes: Lanes) -> None:
    snapshot = current(built)

    assert len(ids(answered(lanes(built.data / "catalog", iwec), "sql database", snapshot, limit=2), snapshot)) == 2


def test_masked_rows_stay_out(built: World, iwec: Path, lanes: Lanes) -> None:
    snapshot = current(built)
    mask = np.ones(len(snapshot), dtype=bool)
    mask[snapshot.row_of("side:sql-joins")] = False

    found = ids(answered(lanes(built.data / "catalog", iwec), "sql joins", snapshot, mask=mask), snapshot)

    assert found
    assert "side:sql-joins" not in found


@pytest.mark.parametrize(
    ("query", "finds"),
    [
        ("-kubernetes", True),
        ("--help kubernetes", True),
        ("the of and", False),
        ("\x00\x1b[31m\u202e kubernetes\n\r\u2028\x7f", True),
        ("\ud800 kubernetes \udfff", True),
        ("kubernetes " + "pods and clusters " * 1_200, True),
        ("k" * 20_000, False),
        ('"kubernetes\\" }] {', True),
        ("\x00\x01", False),
    ],
    ids=["dash", "option", "stop words", "controls", "half characters", "20,000", "one word", "quotes", "nothing"],
)
def test_any_query_is_answered(query: str, finds: bool, built: World, iwec: Path, lanes: Lanes) -> None:
    snapshot = current(built)

    found = ids(answered(lanes(built.data / "catalog", iwec), query, snapshot), snapshot)

    assert ("main:pod-audit" in found) is finds


def test_a_query_is_asked_as_one_visible_line() -> None:
    assert asked("  a\x00b\nc\u202ed\ud800e\x1b[0m\u2028f ") == "a b c d e [0m f"


def test_a_long_query_is_cut_at_a_word() -> None:
    cut = asked("word " * 4_000)

    assert len(cut) <= 4_000
    assert set(cut.split()) == {"word"}


def test_new_cards_are_found_as_soon_as_a_snapshot_has_them(world: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(world.data / "catalog", iwec)
    before = current(world)
    answered(lane, "kubernetes", before)
    pid = lane.status()["pid"]

    world.skill("chart-choice", "Choose a chart for data. Use when a diagram shows a database.")
    world.build()
    after = current(world)

    assert ids(until(lambda: _if_any(lane, "diagram chart", after)), after) == ["main:chart-choice"]
    assert ids(answered(lane, "diagram chart", before), before) == [], "the older snapshot does not have it"
    assert lane.status()["pid"] == pid


def test_cards_of_a_new_source_are_all_found(world: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(world.data / "catalog", iwec)
    answered(lane, "kubernetes", current(world))

    for number in range(40):
        world.skill(f"zebra-{number}", f"Feed zebra {number} from a database.", source="side")
    world.build()
    after = current(world)

    def all_there() -> bool:
        hits = lane.hits("zebra", 100, after).hits
        return hits is not None and len(hits.rows) == 40

    until(all_there)


def test_a_card_that_is_gone_is_not_found(world: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(world.data / "catalog", iwec)
    old = current(world)
    answered(lane, "kubernetes", old)

    shutil.rmtree(world.lib("main") / "pod-audit")
    world.build()
    new = current(world)

    assert ids(answered(lane, "kubernetes", new), new) == []
    until(lambda: ids(answered(lane, "kubernetes", old), old) == [])


def test_a_catalog_that_is_made_anew_is_read_anew(world: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(world.data / "catalog", iwec)
    snapshot = current(world)
    answered(lane, "kubernetes", snapshot)
    pid = lane.status()["pid"]

    (world.data / "catalog").rename(world.root / "old")
    shutil.copytree(world.root / "old", world.data / "catalog")

    assert lane.hits("kubernetes", 10, snapshot).reason == "the catalog was made anew; it is started again"
    assert ids(answered(lane, "kubernetes", snapshot), snapshot) == ["main:pod-audit"]
    assert lane.status()["pid"] != pid


def test_it_begins_when_there_is_a_catalog(built: World, tmp_path: Path, iwec: Path, lanes: Lanes) -> None:
    snapshot = current(built)
    patience = Patience(first_pause=3600, longest_pause=3600)
    lane = lanes(tmp_path / "catalog", iwec, patience=patience)
    until(lambda: "catalog" in lane.hits("kubernetes", 5, snapshot).reason)

    shutil.copytree(built.data / "catalog", tmp_path / "catalog")

    assert ids(answered(lane, "kubernetes", snapshot), snapshot) == ["main:pod-audit"]


def test_a_killed_server_is_replaced(built: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", iwec)
    snapshot = current(built)
    answered(lane, "kubernetes", snapshot)
    pid = lane.status()["pid"]

    os.kill(pid, signal.SIGKILL)

    until(lambda: lane.hits("kubernetes", 5, snapshot).reason.startswith("IWE was ended by signal 9"))
    assert ids(answered(lane, "kubernetes", snapshot), snapshot) == ["main:pod-audit"]
    assert lane.status()["pid"] != pid
    assert lane.status()["starts"] == 2


def test_a_stopped_server_is_late_then_replaced(built: World, iwec: Path, lanes: Lanes) -> None:
    patience = PATIENT._replace(silent=0.2)
    lane = lanes(built.data / "catalog", iwec, budget=0.05, patience=patience)
    snapshot = current(built)
    answered(lane, "kubernetes", snapshot, budget=20.0)
    pid = lane.status()["pid"]

    os.kill(pid, signal.SIGSTOP)
    first = lane.hits("kubernetes", 5, snapshot)
    second = lane.hits("kubernetes", 5, snapshot)

    assert (first.hits, first.reason) == (None, "no answer within 50 ms")
    assert second.reason == "IWE is still busy with an earlier query"
    until(lambda: lane.hits("kubernetes", 5, snapshot).reason.startswith("IWE was silent for"))
    assert ids(answered(lane, "kubernetes", snapshot, budget=20.0), snapshot) == ["main:pod-audit"]
    until(lambda: gone(pid))


def test_a_stopped_server_does_not_hold_up_closing(built: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", iwec)
    answered(lane, "kubernetes", current(built))
    pid = lane.status()["pid"]
    os.kill(pid, signal.SIGSTOP)

    lane.close()

    assert gone(pid)


def test_closing_leaves_no_process_and_may_be_done_twice(built: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", iwec)
    answered(lane, "kubernetes", current(built))
    pid = lane.status()["pid"]

    lane.close()
    lane.close()

    assert gone(pid)
    assert lane.hits("kubernetes", 5, current(built)).reason == "closed"
    lane.start()
    assert lane.status()["pid"] is None


def test_closing_while_it_starts_leaves_no_process(built: World, iwec: Path, lanes: Lanes) -> None:
    for _time in range(5):
        lane = lanes(built.data / "catalog", iwec)
        until(lambda lane=lane: lane.status()["starts"])
        lane.close()
        assert lane.status()["pid"] is None
        assert lane.status()["reason"] == "closed"


@pytest.mark.parametrize("moment", ["at once", "ready"])
def test_it_is_gone_when_its_parent_is_killed(moment: str, built: World, iwec: Path) -> None:
    arguments = [sys.executable, "-c", PARENT, str(built.data / "catalog"), str(iwec), moment]
    with subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not gone(child)
        parent.kill()

    until(lambda: gone(child))


def test_a_process_that_forgets_to_close_it_ends_and_leaves_nothing(built: World, iwec: Path) -> None:
    arguments = [sys.executable, "-c", PARENT, str(built.data / "catalog"), str(iwec), "leaves"]
    with subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        child = int(parent.stdout.readline())
        parent.stdin.close()
        assert parent.wait(30) == 0

    until(lambda: gone(child))


def test_many_threads_get_their_own_answers(built: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", iwec)
    snapshot = current(built)
    answered(lane, "kubernetes", snapshot)
    wanted = {"kubernetes": "main:pod-audit", "csv": "main:csv-cleaning", "notes": "main:release-notes"}

    def ask(number: int) -> bool:
        query = list(wanted)[number % 3]
        return wanted[query] in ids(answered(lane, query, snapshot), snapshot)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(60)))


def test_neighbours_share_pages_and_those_that_share_most_come_first(built: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", iwec)
    answered(lane, "kubernetes", current(built))

    near = lane.neighbours("side:sql-tuning-notes", 3, budget=20.0)

    assert near[:2] == ["main:sql-tuning", "side:sql-joins"], "three categories in common, then one and the source"
    assert lane.neighbours("side:sql-tuning-notes", 1, budget=20.0) == near[:1]
    assert "side:sql-tuning-notes" not in lane.neighbours("side:sql-tuning-notes", 50, budget=20.0)


def test_a_skill_without_a_card_has_no_neighbours(built: World, iwec: Path, lanes: Lanes) -> None:
    lane = lanes(built.data / "catalog", iwec)
    answered(lane, "kubernetes", current(built))

    assert lane.neighbours("main:never-there", 5) == []


def test_asking_changes_no_file_of_the_catalog(world: World, iwec: Path, lanes: Lanes) -> None:
    before = world.catalog()
    lane = lanes(world.data / "catalog", iwec)
    answered(lane, "kubernetes", current(world))
    lane.neighbours("main:pod-audit", 5)
    lane.close()

    assert world.catalog() == before


def test_told_no_program_it_starts_one_only_where_a_search_can_keep_the_budget(
    built: World, iwec: Path, lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{iwec.parent}{os.pathsep}{os.environ['PATH']}")
    snapshot = current(built)
    small = lanes(built.data / "catalog", "", budget=5.0)
    large = lanes(built.data / "catalog", "", budget=0.001)

    assert ids(answered(small, "kubernetes", snapshot), snapshot) == ["main:pod-audit"]
    until(lambda: "a search over 6 cards" in large.hits("kubernetes", 5, snapshot).reason)
    assert large.status()["starts"] == 0


def test_keys_of_cards_are_those_of_the_files(built: World) -> None:
    files = {
        path.relative_to(built.data / "catalog").as_posix() for path in (built.data / "catalog").glob("skills/*/*")
    }

    assert {f"{card_key(skill)}.md" for skill in current(built).ids} == files


def _if_any(lane: IweLane, query: str, snapshot: object) -> object:
    found = lane.hits(query, 10, snapshot)  # type: ignore[arg-type]
    return found if found.hits is not None and len(found.hits.rows) else None
