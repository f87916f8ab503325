"""Named points at which a test can have the process killed, to prove that any moment is a good moment to die.

`RETRIEVAL_KILL_AT=point:n` kills the process with SIGKILL when `point` is reached for the n-th time (n counts from 1
and is 1 when left out). The names of points hold colons too. Without the variable a point costs one comparison.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

_wanted = os.environ.get("RETRIEVAL_KILL_AT", "")
_head, _, _tail = _wanted.rpartition(":")
_name, _count = (_head, int(_tail)) if _tail.isdigit() else (_wanted, 1)
_reached: Counter[str] = Counter()


def reach(point: str) -> None:
    """Die here if the environment asks for it."""
    if point != _name:
        return
    _reached[point] += 1
    if _reached[point] == _count:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
