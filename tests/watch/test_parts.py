"""The watcher's parts one by one: when something is due, where to look, what a mount table says, what a service runs."""

from __future__ import annotations

import os
import plistlib
from pathlib import Path

import pytest

from pipeline.settings import load_settings
from pipeline.watch import install, mounts, service
from pipeline.watch.eyes import Hints
from pipeline.watch.options import Options
from pipeline.watch.pending import PATIENCE, QUIET, TRAILING, Pending
from pipeline.watch.places import Places, survey
from pipeline.watch.pulse import pulse
from pipeline.watch.resident import Digests
from pipeline.watch.service import Service, agent, unit
from tests.support import needs, run
from tests.world import World


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pending(clock: Clock) -> Pending:
    made = Pending(3600, clock)
    assert made.ripen()
    made.done()
    return made


def save(*sources: str, events: int = 1) -> Hints:
    return Hints(frozenset(sources), events=events)


def test_one_save_is_due_at_once_and_looked_at_once_more_when_it_is_quiet(pending: Pending, clock: Clock) -> None:
    pending.hint(save("a"))
    assert pending.ripen()
    assert pending.sources == {"a"}
    pending.done()

    assert not pending.ripen()
    assert pending.until() == pytest.approx(TRAILING)
    clock.now += TRAILING
    assert pending.ripen()
    assert pending.sources == {"a"}
    pending.done()
    assert pending.settled
    assert pending.until() > 3000


def test_a_batch_of_many_waits_for_quiet_but_not_for_ever(pending: Pending, clock: Clock) -> None:
    begun = clock.now
    while clock.now < begun + PATIENCE:
        pending.hint(save("a", events=100))
        assert not pending.ripen()
        clock.now += QUIET / 2
    assert pending.ripen()


def test_what_fails_is_tried_again_more_and_more_rarely_and_at_once_after_a_change(
    pending: Pending, clock: Clock
) -> None:
    pending.hint(save("a"))
    pauses = []
    for _attempt in range(12):
        assert pending.ripen()
        pauses.append(pending.failed())
        assert not pending.ripen()
        clock.now += pauses[-1]
    assert pauses[:3] == [2, 4, 8]
    assert max(pauses) == 300

    assert pending.ripen()
    pending.failed()
    pending.hint(save("b"))
    clock.now += QUIET
    assert pending.ripen()
    assert pending.sources == {"a", "b"}


def test_everything_is_checked_now_and_then(pending: Pending, clock: Clock) -> None:
    clock.now += 3600
    assert pending.ripen()
    assert pending.everything
    assert pending.look_again


def test_a_doubtful_batch_has_everything_looked_at_again(pending: Pending, clock: Clock) -> None:
    pending.hint(Hints(frozenset({"a"}), doubtful=True, renew=True, events=5000))
    clock.now += QUIET
    assert pending.ripen()
    assert not pending.everything
    pending.done()
    clock.now += TRAILING
    assert pending.ripen()
    assert pending.everything
    assert pending.renew


def test_a_lock_of_git_delays_a_build_unless_it_was_left_behind(pending: Pending, clock: Clock, tmp_path: Path) -> None:
    lock = tmp_path / "index.lock"
    lock.touch()
    pending.hint(save("a"))
    pending.hold([str(lock)])
    assert not pending.ripen()

    os.utime(lock, (1, 1))
    clock.now += 1
    pending.hold([str(lock)])
    assert pending.ripen()


def sources_of(places: Places, paths: list[str]) -> set[str]:
    return {name for names in places.sources_of(paths).values() for name in names}


def test_events_are_told_apart_by_source_and_what_is_never_scanned_is_left_out(tmp_path: Path) -> None:
    world = World(tmp_path, "main", "side")
    (world.lib("main") / "peek").symlink_to(world.data, target_is_directory=True)
    settings = load_settings(world.config, environ={**os.environ, **world.environment()}, cwd=world.root)
    places = survey(settings, str(world.config))
    main, side = str(world.lib("main")), str(world.lib("side"))

    assert sources_of(places, [f"{main}/a/SKILL.md"]) == {"main"}
    assert sources_of(places, [f"{main}/a/SKILL.md", f"{side}/b"]) == {"main", "side"}
    assert sources_of(places, [main]) == {"main"}
    assert sources_of(places, [f"{main}-other/a", str(tmp_path)]) == set()
    assert sources_of(places, [f"{main}/.git/index", f"{main}/a/node_modules/b/c"]) == set()
    assert sources_of(places, [f"{main}/peek/snapshots/current.json"]) == set()
    assert places.decides(str(world.config))
    assert places.decides(main)
    assert places.decides(str(tmp_path / ".env"))
    assert not places.decides(str(tmp_path / "unrelated"))


def test_a_source_that_another_one_leads_into_is_found_by_either_spelling(tmp_path: Path) -> None:
    world = World(tmp_path, "main", "side")
    world.lib("side").rmdir()
    world.lib("side").symlink_to(world.lib("main"), target_is_directory=True)
    settings = load_settings(world.config, environ={**os.environ, **world.environment()}, cwd=world.root)
    places = survey(settings, str(world.config))

    assert sources_of(places, [f"{world.lib('main')}/a"]) == {"main", "side"}
    assert sources_of(places, [f"{world.lib('side')}/a"]) == {"main", "side"}


def test_a_root_that_does_not_exist_is_waited_for_above_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.lib("main").rmdir()
    deep = tmp_path / "lib-main" / "not" / "yet"
    world.config.write_text(
        world.config.read_text(encoding="utf-8").replace("lib-main", "lib-main/not/yet"), encoding="utf-8"
    )
    settings = load_settings(world.config, environ={**os.environ, **world.environment()}, cwd=world.root)
    places = survey(settings, str(world.config))

    assert [root.identity for root in places.roots] == [None]
    assert str(tmp_path) in places.anchors
    assert all(places.decides(str(path)) for path in (deep, deep.parent, deep.parent.parent))


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("other\n", encoding="utf-8"),
        lambda path: path.rename(path.with_name("b")),
        lambda path: path.unlink(),
        lambda path: os.utime(path, ns=(1, 1)),
        lambda path: (path.parent / "new" / "deep").mkdir(parents=True),
    ],
)
def test_a_pulse_changes_with_whatever_a_scan_would_see(tmp_path: Path, change: object) -> None:
    path = tmp_path / "a"
    path.write_text("text\n", encoding="utf-8")
    before = pulse(str(tmp_path))
    assert pulse(str(tmp_path)).digest == before.digest
    assert not before.settled

    change(path)  # type: ignore[operator]
    assert pulse(str(tmp_path)).digest != before.digest


def test_a_pulse_leaves_out_what_is_ignored_and_the_data_directory(tmp_path: Path) -> None:
    for name in (".git", "data"):
        (tmp_path / name).mkdir()
    before = pulse(str(tmp_path), str(tmp_path / "data"))
    for name in (".git", "data"):
        (tmp_path / name / "file").touch()

    assert pulse(str(tmp_path), str(tmp_path / "data")).digest == before.digest


def test_a_folder_on_another_machine_is_recognized_in_the_mount_table() -> None:
    table = mounts.parse(
        "1 0 8:1 / / rw - ext4 /dev/a rw\n"
        "2 1 0:5 / /net rw shared:1 - nfs4 host:/x rw\n"
        "3 2 0:6 / /net/with\\040space rw - fuse.sshfs h: rw\n"
        "4 2 0:7 / /net/local rw - tmpfs tmpfs rw\n"
    )

    assert mounts.type_of("/home/me", table) == "ext4"
    assert mounts.type_of("/net/skills/deep", table) == "nfs4"
    assert mounts.type_of("/net/with space/x", table) == "fuse.sshfs"
    assert mounts.type_of("/net/local/x", table) == "tmpfs"
    assert {"nfs4", "cifs", "9p"} <= mounts.REMOTE


def test_digests_that_outlive_a_build_follow_the_file_and_forget_what_is_not_asked_for(tmp_path: Path) -> None:
    digests = Digests()
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_text("one", encoding="utf-8")
    first = [digests.of(path) for path in paths]
    assert first[0] == first[1]
    replacement = tmp_path / "c"
    replacement.write_text("two", encoding="utf-8")
    replacement.replace(paths[0])
    digests.forget_unused()

    assert digests.of(paths[0]) != first[0]
    digests.forget_unused()
    assert list(digests._held) == [str(paths[0])]


ODD = Service(
    ('/opt/it\'s "here"/50%/$HOME/retrieval', "watch", "--config", "/etc/with space/sources.toml"),
    Path("/"),
    {"RETRIEVAL_HOME": '/data/a b/"c"\\d%e$f'},
)


def test_the_unit_is_one_that_systemd_accepts(tmp_path: Path) -> None:
    program = tmp_path / "with space % $ program"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    odd = ODD._replace(command=(str(program), *ODD.command[1:]), folder=tmp_path)
    path = tmp_path / service.UNIT
    path.write_text(unit(odd), encoding="utf-8")

    verified = run([needs("systemd-analyze"), "verify", "--man=no", path])

    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")


def test_a_path_with_a_line_break_is_refused_and_not_written_into_a_unit() -> None:
    with pytest.raises(ValueError, match="line break"):
        unit(ODD._replace(command=("/program",), folder=Path("/a\nExecStartPre=b")))
    with pytest.raises(ValueError, match="quotes"):
        unit(ODD)


def test_the_agent_of_launchd_runs_the_same_command() -> None:
    held = plistlib.loads(agent(ODD, Path("/log")))

    assert held["ProgramArguments"] == list(ODD.command)
    assert held["EnvironmentVariables"] == dict(ODD.variables)
    assert held["KeepAlive"] == {"SuccessfulExit": False}
    assert held["RunAtLoad"] is True


def test_options_reach_the_service_and_secrets_do_not(tmp_path: Path) -> None:
    world = World(tmp_path)
    environ = {**world.environment(), "RETRIEVAL_CHROMA_TOKEN": "geheim", "RETRIEVAL_EMBEDDING_URL": "http://a:b@c/v1"}
    settings = load_settings(world.config, environ={**os.environ, **environ}, cwd=world.root)

    made, notes = install.service(settings, Options(polling=True, every=60).arguments(), environ)

    assert made.command[-6:] == ("--standby", "--config", str(world.config), "--poll", "--check-every", "60")
    assert made.folder == world.root
    assert made.variables == {"RETRIEVAL_HOME": str(world.data)}
    assert sorted(note.split()[0] for note in notes) == ["RETRIEVAL_CHROMA_TOKEN", "RETRIEVAL_EMBEDDING_URL"]
