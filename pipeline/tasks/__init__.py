"""What doit runs: for each step the few lines that bring its inputs, call it and keep its results. A file per step.

These modules are imported by every build, also by one with nothing to do: what is heavy, and the steps themselves, they import when
they run.
"""

from pipeline.tasks import (
    card,
    categorize,
    descriptor,
    embed,
    hub,
    publish,
    references,
    scan,
    select,
    terms,
    tidy,
    upsert,
    verify,
)

__all__ = [
    "card",
    "categorize",
    "descriptor",
    "embed",
    "hub",
    "publish",
    "references",
    "scan",
    "select",
    "terms",
    "tidy",
    "upsert",
    "verify",
]
