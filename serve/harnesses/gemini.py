"""Gemini CLI."""

from serve.harnesses import Harness

HARNESS = Harness(
    name="gemini",
    title="Gemini CLI",
    reload="",
    lane_setting="",
    own_skills=("~/.gemini/skills", "~/.agents/skills"),
)
