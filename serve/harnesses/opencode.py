"""opencode."""

from serve.harnesses import Harness

HARNESS = Harness(
    name="opencode",
    title="opencode",
    reload="",
    lane_setting="skills.paths",
    own_skills=("~/.config/opencode/skill", "~/.config/opencode/skills", "~/.claude/skills", "~/.agents/skills"),
)
