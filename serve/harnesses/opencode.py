"""opencode."""

from serve.harnesses import Harness

HARNESS = Harness(
    name="opencode",
    title="opencode",
    reload="",
    own_skills=("~/.config/opencode/skill", "~/.config/opencode/skills", "~/.claude/skills", "~/.agents/skills"),
)
