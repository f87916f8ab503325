"""Hermes Agent."""

from serve.harnesses import Harness

HARNESS = Harness(
    name="hermes",
    title="Hermes Agent",
    reload="/reload-skills",
    own_skills=("~/.hermes/skills",),
)
