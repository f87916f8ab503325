"""`python -m serve` with a retriever that does what its query says, for what a real one does not do on demand.

Words of a query: `wait FILE` until that file is there or the call is cancelled, `meet FOLDER N` other calls, `print`,
`child FILE`, `progress`, `fail`, `odd`, `say` the query, `much FOLDER N` characters, with a file there for each call.
Whatever else is answered with a short skill; a reference with none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import types
from pathlib import Path

from serve.errors import OperatorError

PATIENCE = 60  # seconds, so that nothing is left behind when a test breaks off


class Searcher:
    def __init__(self, *_arguments: object, **_more: object) -> None:
        pass

    def warm(self) -> None:
        pass

    def require_embedder(self) -> None:
        pass

    embedder = live = None


class Retriever:
    def __init__(self, _settings: object, searcher: Searcher) -> None:
        self.searcher = searcher
        self.children: list[subprocess.Popen[bytes]] = []

    def warm(self) -> None:
        pass

    def close(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()

    def skill(self, query: str, *, cancelled: threading.Event, progress: object) -> dict[str, object]:
        word, *rest = query.split()
        getattr(self, f"do_{word}", self.do_nothing)(rest, cancelled, progress)
        texts = {
            "odd": "bytes that are no text: \udcff\n",
            "say": query,
            "much": "x" * (int(rest[1]) if word == "much" else 0),
        }
        return answer(texts.get(word, "a text\nwith two lines\n"))

    def do_nothing(self, *_given: object) -> None:
        pass

    def do_wait(self, rest, cancelled, progress):
        file = Path(rest[0])
        file.with_suffix(".begun").touch()
        progress(0.5, "waiting")
        for _ in range(PATIENCE * 100):
            if file.exists():
                return
            if cancelled.wait(0.01):
                file.with_suffix(".cancelled").touch()
                return

    def do_meet(self, rest, cancelled, _progress):
        folder, number = Path(rest[0]), int(rest[1])
        (folder / f"{threading.get_ident()}").touch()
        for _ in range(PATIENCE * 100):
            if len(list(folder.iterdir())) >= number:
                return
            if cancelled.wait(0.01):
                return
        raise OperatorError("the others did not come")

    def do_much(self, rest, *_given):
        handle, _ = tempfile.mkstemp(dir=rest[0])
        os.close(handle)

    def do_print(self, *_given):
        print("a stray print")
        os.write(1, b"a stray write\n")
        subprocess.run([sys.executable, "-c", "print('a stray child')"], check=True)

    def do_child(self, rest, *_given):
        self.children.append(subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({PATIENCE})"]))
        Path(rest[0]).write_text(str(self.children[-1].pid), encoding="utf-8")

    def do_progress(self, _rest, _cancelled, progress):
        for fraction in (0.0, 0.25, 0.25, 0.1, 0.75, 1.0):
            progress(fraction, f"at {fraction}")

    def do_fail(self, *_given):
        raise RuntimeError("something broke")


class References:
    def __init__(self, *_arguments: object) -> None:
        pass

    def answer(self, query: str, _limit: int, _max_chars: int) -> dict[str, object]:
        numbers = dict.fromkeys(("documents", "sections", "milliseconds", "age_seconds"), 0)
        return {"query": query, "results": [], "lanes": {}, "generation": "00", "notes": [], "next": "", **numbers}


def answer(text: str) -> dict[str, object]:
    return {
        "found": True,
        "id": "lib:thing",
        "name": "thing",
        "source": "lib",
        "state": "cold",
        "text": text,
        "truncated": False,
        "base_directory": "/lib/thing",
        "skill_path": "/lib/thing/SKILL.md",
        "digest": "blake3:00",
        "files": ["notes.md"],
        "selection": {
            "selector": "rank",
            "reason": "it fits",
            "failed": False,
            "tool_calls": 0,
            "milliseconds": 1.0,
            "considered": [],
        },
        "projection": {
            "state": "none",
            "name": "",
            "path": "",
            "files": 0,
            "skipped": [],
            "reason": "no harness is set",
        },
        "reload": "",
        "runner_up": None,
        "candidates": [],
        "lanes": {"lexical": {"used": True, "reason": ""}},
        "index": {"generation": "00", "age_seconds": 1.0, "skills": 1},
        "notes": [],
        "query_id": "",
        "milliseconds": 1.5,
    }


def stand_in() -> None:
    """Put the stand-ins where the server imports the real ones from."""
    for name, part in (("retrieve", Retriever), ("search", Searcher), ("references.answer", References)):
        module = types.ModuleType(f"serve.{name}")
        setattr(module, part.__name__, part)
        sys.modules[module.__name__] = module


if __name__ == "__main__":
    from serve import __main__ as program

    stand_in()
    code = program.main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)
