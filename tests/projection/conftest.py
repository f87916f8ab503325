"""A library of packages, a data directory, and the real programs that are told of its lanes."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3

from serve.contract import Record
from serve.projection import package
from serve.projection.layout import Layout
from serve.projection.projector import Projected, Projector
from serve.settings import Bounds
from tests.programs import environment_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TIMEOUT = 60.0


def skill_text(name: str, description: str = "Does what is asked.", body: str = "# Steps\n\nDo it.\n") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}"


class World:
    """A library and a data directory below one folder."""

    def __init__(self, root: Path) -> None:
        self.library = root / "library"
        self.data = root / "data"
        self.layout = Layout(self.data)

    def skill(
        self,
        name: str = "pdf",
        text: str | bytes | None = None,
        *,
        folder: str = "",
        source: str = "lib",
        **fields: Any,
    ) -> Record:
        """A skill of the library, written with a text of its own or a plain one, and its record."""
        home = self.library / (folder or name)
        home.mkdir(parents=True, exist_ok=True)
        path = home / "SKILL.md"
        path.write_bytes(text if isinstance(text, bytes) else (skill_text(name) if text is None else text).encode())
        return self.record(path, name, source=source, **fields)

    def record(self, path: Path, name: str, *, source: str = "lib", **fields: Any) -> Record:
        data = path.read_bytes()
        known = {
            "id": f"{source}:{path.parent.relative_to(self.library).as_posix()}",
            "name": name,
            "description": "Does what is asked.",
            "source": source,
            "state": "cold",
            "categories": (),
            "tags": (),
            "path": str(path),
            "digest": blake3(data).hexdigest(),
            "package_digest": "0" * 32,
            "files": 0,
            "bytes": len(data),
        }
        return Record(**(known | fields))

    def add(self, record: Record, path: str, content: str | bytes = "text\n", mode: int = 0o644) -> Path:
        """A file beside a SKILL.md."""
        place = Path(record.path).parent / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        place.chmod(mode)
        return place

    def project(self, record: Record, harness: str = "omp", **bounds: int) -> Projected:
        return Projector(self.data, harness, Bounds(**bounds)).project(record)

    def lane(self, harness: str = "omp") -> Path:
        return self.layout.lane(harness)

    def listed(self, harness: str = "omp") -> list[str]:
        """The names in a lane."""
        return sorted(os.listdir(self.lane(harness)))


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose current folder holds no skills of a project."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    # A file written a moment ago counts as one that may still change; that has tests of its own.
    monkeypatch.setattr(package, "RACY_NS", 0)
    return World(tmp_path)


class Lines:
    """A program that is spoken to in lines of JSON."""

    def __init__(self, command: list[str], cwd: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def send(self, value: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(value).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that is wanted; those before it are dropped."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            assert line is not None, "the program ended"
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if wanted(message):
                return message

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            return self.process.wait(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        finally:
            self._reader.join()
            assert self.process.stdout is not None
            self.process.stdout.close()


class Omp(Lines):
    """OMP in RPC mode, told of one lane."""

    def __init__(self, omp: Path, home: Path, lane: Path, model: str = "http://127.0.0.1:9/v1") -> None:
        agent = home / ".omp" / "agent"
        agent.mkdir(parents=True, exist_ok=True)
        (agent / "config.yml").write_text(
            f"startup:\n  checkUpdate: false\nskills:\n  customDirectories:\n    - {lane}\n", encoding="utf-8"
        )
        (agent / "models.yml").write_text(
            f"providers:\n  fake:\n    baseUrl: {model}\n    apiKey: none\n    api: openai-completions\n"
            "    models: [{id: plain, name: plain, reasoning: false, input: [text], contextWindow: 90000, maxTokens: 999}]\n",
            encoding="utf-8",
        )
        work = home / "work"
        work.mkdir(exist_ok=True)
        command = [str(omp), "--mode", "rpc", "--model", "fake/plain", "--no-session", "--no-lsp", "--no-title"]
        super().__init__(command, work, environment_for(omp, HOME=str(home)))
        self._number = 0
        self.until(lambda message: message.get("type") == "ready")

    def ask(self, kind: str, **fields: Any) -> Any:
        self._number += 1
        mine = f"q{self._number}"
        self.send({"id": mine, "type": kind, **fields})
        answer = self.until(lambda message: message.get("type") == "response" and message.get("id") == mine)
        assert answer["success"], answer
        return answer.get("data")

    def skills(self) -> set[str]:
        """The names of the skills it has now."""
        commands = self.ask("get_available_commands")["commands"]
        return {item["name"].removeprefix("skill:") for item in commands if item["name"].startswith("skill:")}

    def reload(self) -> set[str]:
        """The names of the skills after it was told to look again."""
        self.ask("prompt", message="/reload-plugins")
        return self.skills()


class Hermes(Lines):
    """Hermes' gateway, told of one lane."""

    def __init__(self, hermes: Path, home: Path, lane: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        lane.mkdir(parents=True, exist_ok=True)
        (home / "config.yaml").write_text(
            f"skills:\n  external_dirs:\n    - {lane}\nsecurity:\n  tirith_enabled: false\n", encoding="utf-8"
        )
        python = hermes.with_name("python")
        self.environment = environment_for(hermes, HERMES_HOME=str(home))
        self.python = python
        super().__init__([str(python), "-m", "tui_gateway.entry"], home, self.environment)
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        mine = self._number
        self.send({"jsonrpc": "2.0", "id": mine, "method": method, "params": params})
        answer = self.until(lambda message: message.get("id") == mine)
        assert "error" not in answer, answer
        return answer["result"]

    def reload(self) -> dict[str, Any]:
        """What was added and removed since it looked last."""
        return self.ask("skills.reload")["result"]

    def skills(self) -> set[str]:
        """The names of the skills it lists."""
        listed = self.ask("skills.manage", action="list")["skills"]
        return {name for names in listed.values() for name in names}

    def view(self, *names: str) -> list[dict[str, Any]]:
        """What its tool `skill_view` answers for each name, asked in a process of its own."""
        script = (
            "import json, sys\nfrom tools.skills_tool import skill_view\n"
            "print(json.dumps([json.loads(skill_view(name)) for name in sys.argv[1:]]))"
        )
        done = subprocess.run(
            [str(self.python), "-c", script, *names],
            env=self.environment,
            capture_output=True,
            check=True,
            timeout=TIMEOUT,
            encoding="utf-8",
        )
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def start_omp(omp: Path, world: World, tmp_path: Path) -> Iterator[Callable[[], Omp]]:
    """Starts OMP with the lane of the world."""
    started: list[Omp] = []

    def start() -> Omp:
        started.append(Omp(omp, tmp_path / "omp-home", world.lane("omp")))
        return started[-1]

    yield start
    for program in started:
        assert program.close() == 0


@pytest.fixture
def start_hermes(
    hermes: Path, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Hermes]]:
    """Starts Hermes with the lane of the world. Projecting knows its home too."""
    home = tmp_path / "hermes-home"
    monkeypatch.setenv("HERMES_HOME", str(home))
    started: list[Hermes] = []

    def start() -> Hermes:
        started.append(Hermes(hermes, home, world.lane("hermes")))
        return started[-1]

    yield start
    for program in started:
        assert program.close() == 0
