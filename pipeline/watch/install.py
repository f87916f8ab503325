"""Installs, removes and looks after the watcher's service. Every change can be shown beforehand, and repeated without harm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.config.variables import BY_NAME
from pipeline.engine import files
from pipeline.errors import OperatorError
from pipeline.watch import service as texts
from serve.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.settings import Settings

_PATIENCE = 100  # seconds; a service that is stopped may finish a build first


class Manager(NamedTuple):
    """What runs services here. kind: systemd or launchd. path: the service's file. fault: why it cannot be used, "" if it can."""

    kind: str
    path: Path
    fault: str


class Done(NamedTuple):
    """What was done, or would be. text: of the service's file, "" when it goes. notes: what a person should know."""

    manager: str
    path: str
    actions: list[str]
    text: str
    notes: list[str]


def manager(environ: Mapping[str, str], platform: str = sys.platform) -> Manager:
    """The service manager of this user."""
    home = Path(environ.get("HOME") or Path.home())
    if platform == "darwin":
        fault = "" if shutil.which("launchctl") else "launchctl is not there"
        return Manager("launchd", home / "Library" / "LaunchAgents" / f"{texts.LABEL}.plist", fault)
    folder = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return Manager("systemd", folder / "systemd" / "user" / texts.UNIT, _systemd_fault(platform))


def _systemd_fault(platform: str) -> str:
    if not platform.startswith("linux") or not shutil.which("systemctl"):
        return "there is neither systemd nor launchd"
    done = _run(["systemctl", "--user", "show-environment"])
    return "" if done.returncode == 0 else "systemd runs no services for this user"


def service(
    settings: Settings, arguments: Sequence[str], environ: Mapping[str, str]
) -> tuple[texts.Service, list[str]]:
    """What the service runs for these settings, and notes about what it will not know.

    arguments: more options of `retrieval watch`.
    """
    config = str(settings.config_file)
    script = Path(sys.executable).with_name("retrieval")
    program = [str(script)] if script.is_file() else [sys.executable, "-c", "from pipeline.cli import main; main()"]
    variables: dict[str, str] = {}
    notes = []
    for name in (name for row in BY_NAME.values() for name in (row.name, *row.aliases) if environ.get(name)):
        secret = BY_NAME[name].kind == "secret" if name in BY_NAME else "KEY" in name
        if secret or ("@" in environ[name] and "://" in environ[name]):
            notes.append(f"{name} is not written to the service's file: put it into .env beside {config}")
        elif name != "RETRIEVAL_CONFIG":
            variables[name] = environ[name]
    command = (*program, "watch", "--standby", "--config", config, *arguments)
    return texts.Service(command, Path(config).parent, variables), notes


def install(wanted: texts.Service, notes: Sequence[str], found: Manager, *, dry_run: bool) -> Done:
    """Write the service's file and start it, anew where it ran. Raises OperatorError where there is no manager."""
    try:
        text = texts.unit(wanted) if found.kind == "systemd" else texts.agent(wanted, _log()).decode()
    except ValueError as error:
        raise OperatorError(f"the service's file cannot hold a path with {error}", next_step="rename it") from error
    if found.fault and not dry_run:
        raise OperatorError(
            f"the watcher cannot be installed as a service: {found.fault}",
            next_step=f"run it by hand, for example with nohup or tmux: {texts.by_hand(wanted)}",
        )
    same = _held(found.path) == text
    commands = _start(found)
    actions = ([] if same else [f"write {found.path}"]) + [" ".join(command) for _must, command in commands]
    more = [f"as things are it could not be installed: {found.fault}"] if found.fault else []
    if found.kind == "systemd":
        more.append("it runs while you are logged in; `loginctl enable-linger` lets it run always")
    if not dry_run:
        if not same:
            files.write(found.path, text.encode())
        _carry_out(commands)
    return Done(found.kind, str(found.path), actions, text, [*notes, *more])


def uninstall(found: Manager, *, dry_run: bool) -> Done:
    """Stop the service and remove its file; nothing where there is none."""
    if not found.path.exists():
        return Done(found.kind, str(found.path), [], "", ["no service is installed"])
    commands = [] if found.fault else _stop(found)
    after = [(True, ["systemctl", "--user", "daemon-reload"])] if found.kind == "systemd" and not found.fault else []
    if not dry_run:
        _carry_out(commands)
        found.path.unlink(missing_ok=True)
        _carry_out(after)
    said = [" ".join(command) for _must, command in commands]
    return Done(
        found.kind,
        str(found.path),
        [*said, f"remove {found.path}", *(" ".join(command) for _must, command in after)],
        "",
        [f"it was not stopped: {found.fault}"] if found.fault else [],
    )


def state(found: Manager) -> dict[str, object]:
    """How the service is: manager, path, installed, running, and fault where that cannot be asked."""
    running = False
    if not found.fault and found.path.exists():
        asking = ["launchctl", "print", _target()] if found.kind == "launchd" else []
        running = _run(asking or ["systemctl", "--user", "is-active", "--quiet", texts.UNIT]).returncode == 0
    return {
        "manager": found.kind,
        "path": str(found.path),
        "installed": found.path.exists(),
        "running": running,
        "fault": found.fault,
    }


Commands = list[tuple[bool, list[str]]]  # whether a command must go well, and the command


def _start(found: Manager) -> Commands:
    if found.kind == "launchd":
        return [
            (False, ["launchctl", "bootout", _target()]),
            (True, ["launchctl", "bootstrap", f"gui/{os.getuid()}", str(found.path)]),
        ]
    system = ["systemctl", "--user"]
    return [
        (True, [*system, "daemon-reload"]),
        (True, [*system, "enable", texts.UNIT]),
        (True, [*system, "restart", texts.UNIT]),  # also after an update: what runs is the old program
    ]


def _stop(found: Manager) -> Commands:
    if found.kind == "launchd":
        return [(False, ["launchctl", "bootout", _target()])]
    return [(True, ["systemctl", "--user", "disable", "--now", texts.UNIT])]


def _target() -> str:
    return f"gui/{os.getuid()}/{texts.LABEL}"


def _log() -> Path:
    return Path.home() / "Library" / "Logs" / f"{texts.NAME}.log"


def _carry_out(commands: Commands) -> None:
    for must, command in commands:
        done = _run(command)
        if must and done.returncode:
            raise OperatorError(
                f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip() or f'code {done.returncode}'}",
                next_step="mend that and run it again",
                code=ExitCode.FAILED,
            )


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(command),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
        timeout=_PATIENCE,
    )


def _held(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
