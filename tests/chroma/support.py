"""Rows for the store's tests, and the processes that they start."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from pipeline.chroma import ChromaConfig, Rows
from tests.support import OUTER_ENVIRONMENT, ROOT, lacking

EMBEDDER = "e" * 32
OTHER_EMBEDDER = "f" * 32
DIMENSION = 16
LISTENING = "listening on address"


def vector(text: str, dimension: int = DIMENSION) -> np.ndarray:
    """A direction of length 1 that follows from a text."""
    numbers = np.frombuffer(hashlib.shake_256(text.encode()).digest(2 * dimension), dtype="<u2").astype(np.float32)
    centred = numbers - 32_767.5
    return centred / np.linalg.norm(centred)


def rows(ids, version="1", dimension=DIMENSION) -> Rows:
    """A row for each ID; `version` goes into texts and row key."""
    return Rows(
        ids=list(ids),
        vectors=np.stack([vector(key, dimension) for key in ids]) if len(ids) else np.empty((0, dimension), np.float32),
        metadatas=[{"name": key, "tags": ["a", version], "row_key": f"{key}-{version}"} for key in ids],
        documents=[f"what {key} does, {version}" for key in ids],
    )


def keys(count, start=0) -> list[str]:
    return [f"library:skill/{number:05}" for number in range(start, start + count)]


def wanted(ids, version="1") -> dict[str, str]:
    return {key: f"{key}-{version}" for key in ids}


def assert_equal(left: Rows, right: Rows) -> None:
    """Same rows in the same order, vectors up to the rounding that a row goes through in cosine space."""
    assert list(left.ids) == list(right.ids)
    assert list(left.metadatas) == list(right.metadatas)
    assert list(left.documents) == list(right.documents)
    np.testing.assert_allclose(left.vectors, right.vectors, atol=1e-6)


def folder(path: Path, namespace: str = "mine") -> ChromaConfig:
    return ChromaConfig(mode="embedded", namespace=namespace, path=str(path))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A real `chroma run` on a free port, which can be killed and started again on the same data."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.port = free_port()
        self._command = Path(sys.executable).with_name("chroma.exe" if sys.platform == "win32" else "chroma")
        if not self._command.is_file():
            lacking("the `chroma` command", "install the `build` extra into the environment that runs the tests")
        self.start()

    def start(self) -> None:
        arguments = [self._command, "run", "--path", self.path, "--host", "127.0.0.1", "--port", str(self.port)]
        self._process = subprocess.Popen(
            list(map(str, arguments)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            env=OUTER_ENVIRONMENT,
        )
        self._said: list[str] = []
        listening = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(listening,), daemon=True)
        self._reader.start()
        assert listening.wait(60), "".join(self._said)
        # It says so a moment before it is true.
        deadline = time.monotonic() + 10
        while not self._accepts():
            assert self._process.poll() is None, "".join(self._said)
            assert time.monotonic() < deadline, "".join(self._said)

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)
        self._reader.join(10)

    def config(self, namespace: str = "mine", **more) -> ChromaConfig:
        return ChromaConfig(mode="server", namespace=namespace, host="127.0.0.1", port=self.port, **more)

    def _read(self, listening: threading.Event) -> None:
        with self._process.stdout:
            for line in self._process.stdout:
                self._said.append(line)
                if LISTENING in line:
                    listening.set()
        listening.set()  # it ended: whoever waits shall see what it said


def python(source: str, *arguments: str, environment=None) -> subprocess.Popen[str]:
    """A Python process of this environment that runs `source` in the checkout."""
    return subprocess.Popen(
        [sys.executable, "-c", source, *arguments],
        cwd=ROOT,
        env={**OUTER_ENVIRONMENT, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
