"""Claude Code."""

from serve.harnesses import Harness

HARNESS = Harness(
    name="claude",
    title="Claude Code",
    reload="",
    lane_setting="",
    own_skills=("~/.claude/skills",),
)
