"""A process that asks the same questions over and over, and says what it saw when its standard input is closed.

Arguments: the data directory, and how many answers it gives before it says that it is ready.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

from serve.embedder import EmbedderConfig
from serve.errors import OperatorError
from serve.query import Query
from serve.search import Searcher

EDITION = re.compile(r"edition-(\d+)")


def main(data: Path, warm: int) -> None:
    told_to_end = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), told_to_end.set()), daemon=True).start()
    searcher = Searcher(data, EmbedderConfig())
    editions: dict[str, list[int]] = {}
    errors: list[str] = []
    answers = 0
    while not told_to_end.is_set():
        try:
            answer = searcher.answer(Query("tune a slow database query", limit=50))
            snapshot = searcher.live.current()
            described = [snapshot.descriptor(row).purpose for row in range(len(snapshot))]
        except (OperatorError, OSError, ValueError) as error:
            errors.append(f"{type(error).__name__}: {error}")
            continue
        answers += 1
        seen = {edition(row.record.description) for row in answer.rows}
        if len(seen) != 1 or len({edition(text) for text in described}) != 1:
            errors.append(f"{answer.generation} mixes editions {sorted(seen)}")
        errors += [f"{name}: {lane.reason}" for name, lane in answer.lanes.items() if not lane.used]
        known = editions.setdefault(answer.generation, [])
        known += sorted(seen - set(known))
        if answers == warm:
            print("ready", flush=True)
    print(json.dumps({"answers": answers, "editions": editions, "errors": errors[:20]}), flush=True)


def edition(text: str) -> int:
    found = EDITION.search(text)
    return int(found.group(1)) if found else -1


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
