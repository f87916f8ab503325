"""The usage record: kept through kills, bounded, private, shared by many processes, and never the failure of an answer."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve import usage, usage_rows
from serve.errors import OperatorError
from serve.usage import Event, Row, UsageLog
from tests.support import ROOT

EVENT = Event(
    tool="retrieve_skill",
    query="fill in a form",
    harness="omp",
    lanes={"semantic": "used", "lexical": "used", "iwe": "no answer within 30 ms"},
    generation="0123456789abcdef",
    candidates=(("main:forms", 0.91), ("main:pdf", 0.5)),
    chosen="main:forms",
    selector="rank",
    reason="score and margin allow it",
    milliseconds=12.5,
)

WRITER = """
import sys
from pathlib import Path
from serve.usage import Event, UsageLog
log = UsageLog(Path(sys.argv[1]), keep_rows=int(sys.argv[3]))
for number in range(int(sys.argv[2])):
    done = log.record(Event(tool="retrieve_skill", query=f"{sys.argv[4]} {number}"))
    print(done.query_id or "-", done.note, flush=True)
"""


def writer(folder: Path, count: int, name: str = "q", keep: int = 100_000) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(folder), str(count), str(keep), name]
    return subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def log(tmp_path: Path):
    made = UsageLog(tmp_path)
    yield made
    made.close()


def queries(log: UsageLog) -> list[str]:
    return [row.event.query for row in log.rows()]


def test_what_is_recorded_comes_back_with_an_id_and_a_time(log: UsageLog) -> None:
    before = time.time()
    done = log.record(EVENT)

    assert list(log.rows()) == [Row(done.query_id, pytest.approx(before, abs=60), EVENT)]
    assert done.query_id
    assert done.note == ""


def test_each_query_has_an_id_of_its_own(log: UsageLog) -> None:
    assert len({log.record(EVENT).query_id for _time in range(500)}) == 500


def test_rows_come_oldest_first_and_from_a_time_on(log: UsageLog) -> None:
    for number in range(5):
        log.record(Event(tool="t", query=str(number)))
    rows = list(log.rows())

    assert [row.event.query for row in rows] == ["0", "1", "2", "3", "4"]
    assert [row.event.query for row in log.rows(rows[3].at)] == ["3", "4"]


def test_switched_off_it_makes_no_file(tmp_path: Path) -> None:
    log = UsageLog(tmp_path, enabled=False)

    assert log.record(EVENT) == ("", "")
    assert list(log.rows()) == []
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_go_first_and_the_number_stays_within_a_tenth(tmp_path: Path) -> None:
    log = UsageLog(tmp_path, keep_rows=200)
    most = 0
    for number in range(1_000):
        log.record(Event(tool="t", query=str(number)))
        most = max(most, log.state()["rows"]) if number % 50 == 0 else most
    kept = [int(query) for query in queries(log)]
    log.close()

    assert kept == list(range(kept[0], 1_000))
    assert 200 <= len(kept) <= 220 + 64
    assert most <= 220 + 64


def test_numbers_go_on_after_all_rows_were_dropped(tmp_path: Path) -> None:
    log = UsageLog(tmp_path, keep_rows=1)
    for number in range(200):
        log.record(Event(tool="t", query=str(number)))
    log.close()
    again = UsageLog(tmp_path, keep_rows=1)
    again.record(Event(tool="t", query="last"))

    assert queries(again)[-1] == "last"
    again.close()


def test_long_texts_and_lists_are_cut(log: UsageLog) -> None:
    many = tuple((f"main:{number}", 0.5) for number in range(1_000))
    log.record(Event(tool="t", query="x" * 20_000, reason="y" * 20_000, candidates=many, lanes={"iwe": "z" * 9_000}))
    (row,) = log.rows()

    assert len(row.event.query) == usage_rows.MAX_QUERY
    assert len(row.event.reason) == len(row.event.lanes["iwe"]) == usage_rows.MAX_REASON
    assert row.event.candidates == many[: usage_rows.MAX_CANDIDATES]


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet=st.characters(), max_size=40))
def test_any_text_can_be_recorded(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "texts"
    folder.mkdir(exist_ok=True)
    log = UsageLog(folder, keep_rows=10)
    done = log.record(Event(tool=text, query=text, chosen=text, lanes={text: text}, candidates=((text, 1.0),)))
    *_others, last = log.rows()
    log.close()

    assert done.note == ""
    assert last.event.query == text.encode("utf-8", "replace").decode()


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_only_the_owner_may_read_it(log: UsageLog, tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        log.record(EVENT)
    finally:
        os.umask(previous)

    assert {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {
        "usage.sqlite3": "0o600",
        "usage.sqlite3-wal": "0o600",
        "usage.sqlite3-shm": "0o600",
    }


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_a_file_that_others_could_read_is_closed_to_them(log: UsageLog, tmp_path: Path) -> None:
    log.record(EVENT)
    log.close()
    (tmp_path / usage.FILE).chmod(0o644)

    log.record(EVENT)

    assert (tmp_path / usage.FILE).stat().st_mode & 0o777 == 0o600


def test_a_kill_loses_nothing_that_was_recorded(tmp_path: Path) -> None:
    with writer(tmp_path, 1_000_000) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _line in range(300)]
        process.kill()
        told += [line.strip() for line in process.stdout if line.endswith("\n")]
    log = UsageLog(tmp_path)
    held = [row.query_id for row in log.rows()]

    assert held[: len(told)] == told
    assert len(held) - len(told) <= 1, "the one that was recorded and not told any more"
    assert log.record(EVENT).note == ""
    log.close()


def test_many_processes_record_at_once(tmp_path: Path) -> None:
    processes = [writer(tmp_path, 50, str(number)) for number in range(12)]
    told = [process.communicate()[0].splitlines() for process in processes]
    log = UsageLog(tmp_path)

    assert sorted(line for lines in told for line in lines) == sorted(f"{row.query_id} " for row in log.rows())
    assert sum(map(len, told)) == 600


def test_many_threads_record_at_once(log: UsageLog) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda number: log.record(Event(tool="t", query=str(number))), range(400)))

    assert [item for item in done if item.note] == []
    assert sorted(queries(log), key=int) == [str(number) for number in range(400)]


def test_many_processes_together_keep_to_the_bound(tmp_path: Path) -> None:
    for process in [writer(tmp_path, 150, str(number), keep=100) for number in range(6)]:
        process.communicate()
    log = UsageLog(tmp_path, keep_rows=100)
    log.record(EVENT)

    assert log.state()["rows"] <= 101
    log.close()


@pytest.mark.parametrize(
    "damage", [b"this is no database, though it is long enough" * 40, b"SQLite format 3\x00" + b"\xff" * 4096]
)
def test_what_is_no_database_is_moved_aside_and_said(damage: bytes, log: UsageLog, tmp_path: Path) -> None:
    (tmp_path / usage.FILE).write_bytes(damage)

    first, second = log.record(EVENT), log.record(EVENT)

    (aside,) = tmp_path.glob("usage-damaged-*.sqlite3")
    assert str(aside) in first.note
    assert aside.read_bytes() == damage
    assert second.note == ""
    assert [row.query_id for row in log.rows()] == [first.query_id, second.query_id]


def test_a_file_damaged_in_its_middle_is_moved_aside_by_one_of_many(tmp_path: Path) -> None:
    log = UsageLog(tmp_path)
    for number in range(300):
        log.record(Event(tool="t", query=str(number) * 100))
    log.close()
    data = bytearray((tmp_path / usage.FILE).read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    (tmp_path / usage.FILE).write_bytes(data)

    processes = [writer(tmp_path, 20, str(number)) for number in range(6)]
    told = [line for process in processes for line in process.communicate()[0].splitlines()]

    assert len(list(tmp_path.glob("usage-damaged-*.sqlite3"))) == 1
    assert sum("begun anew" in line for line in told) == 1
    recorded = [line.split()[0] for line in told if not line.startswith("-")]
    assert len(recorded) == 120
    assert sorted(row.query_id for row in UsageLog(tmp_path).rows()) == sorted(recorded)


def test_a_file_that_was_removed_is_begun_anew(log: UsageLog, tmp_path: Path) -> None:
    log.record(EVENT)
    for path in tmp_path.iterdir():
        path.unlink()

    done = log.record(EVENT)

    assert done.note == ""
    assert [row.query_id for row in log.rows()] == [done.query_id]


def test_a_locked_file_costs_a_note_and_not_the_answer(log: UsageLog, tmp_path: Path) -> None:
    log.record(EVENT)
    other = sqlite3.connect(tmp_path / usage.FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    during = log.record(EVENT)
    other.execute("ROLLBACK")
    other.close()
    after = log.record(EVENT)

    assert during == ("", "this query is not in the usage record: database is locked")
    assert after.note == ""
    assert log.state()["rows"] == 2


def test_without_its_folder_there_is_a_note_and_no_folder(tmp_path: Path) -> None:
    log = UsageLog(tmp_path / "gone")

    assert log.record(EVENT).note == "this query is not in the usage record: there is no data directory"
    assert not (tmp_path / "gone").exists()


def test_a_folder_in_its_place_costs_a_note(log: UsageLog, tmp_path: Path) -> None:
    (tmp_path / usage.FILE).mkdir()

    assert log.record(EVENT).note.startswith("this query is not in the usage record: ")


def test_a_record_of_a_newer_program_is_left_as_it_is(log: UsageLog, tmp_path: Path) -> None:
    newer = sqlite3.connect(tmp_path / usage.FILE, isolation_level=None)
    newer.execute("PRAGMA user_version = 2")
    newer.close()
    before = (tmp_path / usage.FILE).read_bytes()

    assert log.record(EVENT).note.endswith("the usage record has format 2, this program knows 1")
    with pytest.raises(OperatorError, match="format 2"):
        list(log.rows())
    assert (tmp_path / usage.FILE).read_bytes() == before


def test_a_damaged_file_is_an_error_for_who_reads_it(log: UsageLog, tmp_path: Path) -> None:
    (tmp_path / usage.FILE).write_bytes(b"no database" * 500)

    with pytest.raises(OperatorError, match="cannot be read"):
        list(log.rows())
    with pytest.raises(OperatorError, match="cannot be read"):
        log.state()


def test_state_counts_without_making_a_file(log: UsageLog, tmp_path: Path) -> None:
    assert log.state() == {"enabled": True, "path": str(tmp_path / usage.FILE), "rows": 0, "oldest": None, "bytes": 0}
    assert list(tmp_path.iterdir()) == []
    log.record(EVENT)

    assert log.state()["rows"] == 1
    assert log.state()["oldest"] == next(log.rows()).at


def test_closing_twice_and_recording_after_it_are_no_harm(log: UsageLog) -> None:
    log.close()
    log.close()

    assert log.record(EVENT).query_id
