"""OMP."""

from serve.harnesses import Harness

HARNESS = Harness(
    name="omp",
    title="OMP",
    reload="/reload-plugins",
    lane_setting="skills.customDirectories",
    own_skills=("~/.omp/agent/skills", "~/.agents/skills"),
)
