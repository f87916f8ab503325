"""Installing the service: previewed, repeated, removed; and what a machine without a service manager is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT, needs
from tests.watch.follower import PROGRAM
from tests.world import World

UNIT = ".config/systemd/user/retrieval-watch.service"


class Machine:
    """A home of its own, with a systemctl that writes down what it is asked for."""

    def __init__(self, world: World, *, answers: bool = True) -> None:
        self.world = world
        self.home = world.root / "home"
        self.home.mkdir()
        self.log = world.root / "asked"
        folder = world.root / "bin"
        folder.mkdir()
        program = folder / "systemctl"
        program.write_text(
            f'#!{needs("sh")}\nprintf "%s\\n" "$*" >>"{self.log}"\n'
            f'case "$*" in *is-active*) [ -e "{self.log}.active" ];; *restart*) : >"{self.log}.active";; '
            f'*disable*) rm -f "{self.log}.active";; *) exit {0 if answers else 1};; esac\n',
            encoding="utf-8",
        )
        program.chmod(0o755)
        self.path = f"{folder}{os.pathsep}{os.environ['PATH']}"

    def watch(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `retrieval watch` there."""
        home = {"HOME": str(self.home), "PATH": self.path, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, "watch", *arguments],
            cwd=self.world.root,
            env={**os.environ, **self.world.environment(), **home},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            encoding="utf-8",
            timeout=60,
        )

    @property
    def unit(self) -> Path:
        """The service's file."""
        return self.home / UNIT

    def asked(self) -> list[str]:
        """What systemctl was asked to change since the last time."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line.removeprefix("--user ") for line in lines if "show-environment" not in line and "is-" not in line]


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this system has no systemd")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(World(tmp_path))


def test_a_preview_shows_the_unit_and_does_nothing(machine: Machine) -> None:
    done = machine.watch("--install", "--dry-run", "--poll")

    assert done.returncode == 0, done.stderr
    assert f"would write {machine.unit}" in done.stdout
    assert "would run systemctl --user restart retrieval-watch.service" in done.stdout
    assert '"--standby" "--config"' in done.stdout
    assert '"--poll"' in done.stdout
    assert machine.asked() == []
    assert not machine.unit.exists()


@pytest.mark.requirement("R060")
def test_installing_twice_writes_once_and_restarts_each_time(machine: Machine) -> None:
    steps = ["daemon-reload", "enable retrieval-watch.service", "restart retrieval-watch.service"]
    first = machine.watch("--install")
    assert first.returncode == 0, first.stderr
    assert machine.asked() == steps
    before = machine.unit.stat().st_mtime_ns
    assert str(machine.world.config) in machine.unit.read_text(encoding="utf-8")

    second = machine.watch("--install")

    assert second.returncode == 0, second.stderr
    assert "write" not in second.stdout
    assert machine.asked() == steps
    assert machine.unit.stat().st_mtime_ns == before


def test_removing_stops_the_service_and_a_second_time_finds_nothing(machine: Machine) -> None:
    machine.watch("--install")
    machine.asked()
    assert machine.watch("--uninstall", "--dry-run").returncode == 0
    assert machine.asked() == []

    first, second = machine.watch("--uninstall"), machine.watch("--uninstall")

    assert (first.returncode, second.returncode) == (0, 0)
    assert machine.asked() == ["disable --now retrieval-watch.service", "daemon-reload"]
    assert not machine.unit.exists()
    assert "no service is installed" in second.stdout


def test_status_tells_service_and_watcher_apart(machine: Machine) -> None:
    before = machine.watch("--status")
    machine.watch("--install")
    after = machine.watch("--status")

    assert (before.returncode, after.returncode) == (3, 3)
    assert "service: not installed" in before.stdout
    assert "service: running" in after.stdout
    assert "watcher: none" in after.stdout


def test_a_machine_without_a_service_manager_is_told_how_to_run_it_by_hand(tmp_path: Path) -> None:
    machine = Machine(World(tmp_path), answers=False)
    done = machine.watch("--install")

    assert done.returncode == 1
    assert done.stderr.startswith("error: the watcher cannot be installed as a service: systemd runs no services")
    assert f"watch --standby --config {machine.world.config}" in done.stderr
    assert f"RETRIEVAL_HOME={machine.world.data}" in done.stderr
    assert not machine.unit.exists()

    preview = machine.watch("--install", "--dry-run")
    assert preview.returncode == 0
    assert "as things are it could not be installed" in preview.stdout


@pytest.mark.parametrize("arguments", [("--install", "--uninstall"), ("--status", "--install"), ("--dry-run",)])
def test_what_does_not_go_together_is_refused_with_2(machine: Machine, arguments: tuple[str, ...]) -> None:
    assert machine.watch(*arguments).returncode == 2


def test_the_script_of_the_checkout_needs_its_environment(tmp_path: Path) -> None:
    script = tmp_path / "install-watcher.sh"
    script.write_bytes((ROOT / "install-watcher.sh").read_bytes())
    script.chmod(0o755)

    done = subprocess.run([script], capture_output=True, check=False, encoding="utf-8", timeout=60)
    assert done.returncode == 1
    assert done.stderr == f"error: there is no environment in {tmp_path}/.venv\n  next: run {tmp_path}/setup.sh\n"

    program = tmp_path / ".venv" / "bin" / "retrieval"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!{needs("sh")}\necho "$@" "${{RETRIEVAL_CONFIG:-}}"\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "sources.toml").touch()
    for given, handed_on in (
        ([], "watch --install"),
        (["--dry-run"], "watch --install --dry-run"),
        (["--status"], "watch --status"),
    ):
        done = subprocess.run([script, *given], capture_output=True, check=False, encoding="utf-8", timeout=60)
        assert done.stdout == f"{handed_on} {tmp_path}/sources.toml\n"
