"""Claude Code."""

from serve.harnesses import Harness

HARNESS = Harness(
    name="claude",
    title="Claude Code",
    reload="/reload-skills",
    own_skills=("~/.claude/skills",),
)
