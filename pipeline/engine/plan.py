"""The plan of a build: what would be computed, reused, written and removed, found out by doing it in a shadow."""

from __future__ import annotations

from pipeline.engine.build import Build
from pipeline.engine.shadow import run_steps, shadow

STEPS = ("scan", "categorize", "select", "descriptor", "card", "hub", "terms", "embed", "upsert")
OF_REFERENCES = ("document", "section")


def plan(build: Build) -> dict[str, object]:
    """Per step the counts a build would have now, and whether it would change anything. Writes nothing.

    `select` looks at all skills whenever it runs, so its count says nothing about change.
    """
    with shadow(build, clean=False) as trial:
        run_steps(trial)
        steps = {
            name: {"execute": count.executed, "reuse": count.reused, "write": count.written, "remove": count.removed}
            for name in (STEPS + OF_REFERENCES if build.references else STEPS)
            for count in [trial.report.step(name)]
        }
    changes = any(row["execute"] or row["write"] or row["remove"] for name, row in steps.items() if name != "select")
    return {"steps": steps, "changes": changes}
