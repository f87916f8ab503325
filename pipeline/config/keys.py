"""The table of every key in `sources.toml`: one row drives checking, errors and the reference page alike."""

from __future__ import annotations

from typing import Literal, NamedTuple

STATES = ("native", "hidden", "cold", "archived")
HARNESSES = ("hermes", "omp", "claude", "codex", "opencode", "gemini")
KINDS = ("skills", "references")
LATER_KINDS = ("workflows", "context_mode", "hermes_sessions")
POLICIES = ("review", "index")


class Key(NamedTuple):
    """One key. default: what leaving it out means, in words."""

    name: str
    kind: Literal["text", "bool", "globs", "choice", "tables", "table"]
    help: str
    default: str
    choices: tuple[str, ...] = ()


TOP = (
    Key("sources", "tables", "The folders to read, one `[[sources]]` block each.", "none"),
    Key("policy", "table", "Rules for the whole index.", "see below"),
)

POLICY = (
    Key(
        "uncategorized",
        "choice",
        "What happens to a skill that no approved category fits: it waits in the review queue, or it is indexed "
        "as uncategorized.",
        '`"review"`',
        choices=POLICIES,
    ),
)

SOURCE = (
    Key(
        "name",
        "text",
        "Unique name, the beginning of its skills' or sections' IDs: letters, digits, `.`, `_`, `-`, at most 64.",
        "required",
    ),
    Key(
        "kind",
        "choice",
        "What the folder holds: packages with a SKILL.md, or Markdown files (`.md`, `.markdown`) whose sections answer "
        "`retrieval references`.",
        '`"skills"`',
        choices=KINDS + LATER_KINDS,
    ),
    Key("path", "text", "The folder. Required, except for a Hermes home.", "Hermes: the home in use"),
    Key("enabled", "bool", "`false` leaves the source out.", "`true`"),
    Key(
        "state",
        "choice",
        "`native`: the harness already shows these skills, so their names suppress twins there. `hidden`: installed, "
        "kept out of the prompt. `cold`: a library. `archived`: put away, still found. Skills only.",
        "by the path: a harness's own tree is native, its `.archive` archived, all else cold",
        choices=STATES,
    ),
    Key(
        "harness",
        "choice",
        "The harness whose tree the folder is. Skills only.",
        "by the path, else none",
        choices=HARNESSES,
    ),
    Key(
        "group",
        "text",
        "In a group each skill name is kept once: the earlier source's, archives last. Skills only.",
        "none",
    ),
    Key(
        "profiles", "bool", 'With `harness = "hermes"`: `path` is a Hermes home; its profiles are read too.', "`false`"
    ),
    Key(
        "include",
        "globs",
        "Only skills in folders, or references in files, that one of these globs covers.",
        "everything",
    ),
    Key(
        "exclude",
        "globs",
        "No skills in folders, and no references in files, that one of these globs covers.",
        "nothing",
    ),
)
