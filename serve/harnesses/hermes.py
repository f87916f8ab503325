"""Hermes Agent."""

from serve.harnesses import Harness

HARNESS = Harness(
    name="hermes",
    title="Hermes Agent",
    reload="/reload-skills",
    lane_setting="skills.external_dirs",
    own_skills=("~/.hermes/skills",),
)
