"""Codex."""

from serve.harnesses import Harness

HARNESS = Harness(
    name="codex",
    title="Codex",
    reload="",
    own_skills=("~/.codex/skills", "~/.agents/skills"),
)
