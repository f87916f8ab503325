"""How many threads the numeric libraries may start."""

from __future__ import annotations

import os


def quiet_threads() -> None:
    """One BLAS thread, said before numpy is loaded: two cost more than they gain at these sizes when another core is busy."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
