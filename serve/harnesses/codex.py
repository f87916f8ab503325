"""Codex."""

from serve.harnesses import Harness

HARNESS = Harness(
    name="codex",
    title="Codex",
    reload="",
    lane_setting="",
    own_skills=("~/.codex/skills", "~/.agents/skills"),
)
