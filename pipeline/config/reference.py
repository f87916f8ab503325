"""Writes the reference page of all settings out of the tables that read them.

`python -m pipeline.config.reference` prints it; a test compares it with `docs/configuration.md`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipeline.config.keys import LATER_KINDS, POLICY, SOURCE, Key
from pipeline.config.variables import GROUPS, Variable, bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INTRODUCTION = """\
# Configuration

Which folders are read stands in `sources.toml`; everything else is set by environment variables, which may also
stand in a `.env` file. `sources.example.toml` is a commented start. A setting that cannot be read stops the command
with exit code 2 and the file, the line and the next step; nothing is guessed, and no number is silently brought
into its bounds.

This page is made from the program's own tables: `python -m pipeline.config.reference > docs/configuration.md`.

## Where things are looked for

{places}
## `.env`

`NAME=value`, one a line; `export`, quotes and `# comments` are understood. `${NAME}` and `${NAME:-default}` are
filled in from the environment and from earlier lines, except in single quotes. The environment always wins, and no
variable leaves the program, except those that `RETRIEVAL_SCOUT_VARIABLES` names. A name without a value counts as
unset.

A server that a harness starts (`python -m serve`, `start.sh`) runs in whatever project the harness works in. It reads
neither `.env` nor `sources.toml` of the current folder: only the `.env` beside the configuration that
`RETRIEVAL_CONFIG` names, else the one in `~/.config/retrieval`.

## Paths

A relative path starts at the folder of the file it stands in; in an environment variable or on the command line, at
the current folder. `~`, `~user`, `$NAME`, `${NAME}` and `${NAME:-default}` are filled in, also when a variable's
value begins with `~` or names further variables; on Windows `%NAME%` too. `$$` is a dollar sign. A variable that is
unset or empty is an error unless it has a default. Links are kept.

## `sources.toml`
"""

PLACES = (
    (
        "`sources.toml`",
        "`--config`",
        "`RETRIEVAL_CONFIG`",
        "`./sources.toml`",
        "`$XDG_CONFIG_HOME/retrieval/sources.toml`",
        "`~/.config/retrieval/sources.toml`",
    ),
    ("`taxonomy.toml`", "`RETRIEVAL_TAXONOMY`", "beside `sources.toml`", "the bundled vocabulary"),
    ("`category-overrides.toml`", "`RETRIEVAL_CATEGORY_OVERRIDES`", "beside `sources.toml`"),
    ("data", "`RETRIEVAL_HOME`", "`$XDG_DATA_HOME/retrieval`", "`~/.local/share/retrieval`"),
    ("a variable", "the environment", "`.env` beside `sources.toml`", "`.env` in the current folder"),
)

HERMES = """
Globs are compared with the path below the source, of a skill's folder or of a reference's file, parts separated by
`/`. `*`, `?` and `[abc]` stay within one part, `**` stands for any number of parts, and a glob that covers a folder
covers everything below it: `drafts` is one folder at the top, `**/drafts` one at any depth, `*-old` all such
folders at the top. Case counts.

### A Hermes home

```toml
[[sources]]
name = "hermes"
harness = "hermes"
profiles = true
```

is read as one source for each folder that exists, in this order of precedence:

| source | folder | state |
|---|---|---|
| `hermes` | `skills` | native |
| `hermes-PROFILE` | `profiles/PROFILE/skills`, by name | native |
| `hermes.archive`, `hermes-PROFILE.archive` | the `.archive` in each of these | archived |

All of them form one group. Without `path` the home is `HERMES_HOME`, else `~/.hermes`, on Windows
`%LOCALAPPDATA%\\hermes`. A home that is itself a profile stands for the home it belongs to.

### References

```toml
[[sources]]
name = "handbook"
kind = "references"
path = "~/handbook"
include = ["guides", "**/*.markdown"]
exclude = ["**/drafts"]
```

is read as one document for each Markdown file (`.md`, `.markdown`; not `.mdx`, which is a program with texts in it)
below the folder, whose path relative to it the globs let through; links are not followed. A document is cut at its
headings into sections, longer ones every 512 tokens with 64 of overlap, counted by the embedder's own tokenizer if
it is the builtin one, else by a rule: at most six letters of a word, three digits, or any other sign. Front matter
gives the title and is no section. Files over 16 MiB, and those that are no text, are
reported and left out; in a text with bytes that are not UTF-8 these are shown as U+FFFD, and answers say so.

### What is refused, and what is only said

Errors: unknown keys and values, wrong types, two sources with one name (case does not count), a variable without a
value, `state`, `harness`, `group` or `profiles` for references, a source in Retrieval's data folder (its projection
lanes above all) or around it. Warnings: a folder that does not exist, a folder that two sources read, a kind that
this version does not read yet ({later}), an unknown `RETRIEVAL_` variable, a variable that has no effect as things
are set. A source with `enabled = false` is checked for spelling only.
"""


def page() -> str:
    """The whole page, Markdown."""
    places = _table(("what", "the first of"), ((what, " · ".join(first)) for what, *first in PLACES))
    parts = [INTRODUCTION.replace("{places}", places)]
    parts += ["\n### `[[sources]]`\n\n", _keys(SOURCE), "\n### `[policy]`\n\n", _keys(POLICY)]
    parts += [HERMES.replace("{later}", ", ".join(f"`{kind}`" for kind in LATER_KINDS)), "\n## Variables\n"]
    for title, rows in GROUPS:
        parts += [f"\n### {title}\n\n", _variables(rows)]
    return "".join(parts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _keys(keys: Sequence[Key]) -> str:
    return _table(("key", "value", "without it", "meaning"), ((f"`{k.name}`", _of(k), k.default, k.help) for k in keys))


def _of(key: Key) -> str:
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices if choice not in LATER_KINDS)
    return {"text": "text", "bool": "`true`, `false`", "globs": "list of globs"}[key.kind]


def _variables(rows: Sequence[Variable]) -> str:
    return _table(("variable", "value", "without it", "meaning"), (_variable(row) for row in rows))


def _variable(row: Variable) -> tuple[str, str, str, str]:
    also = f" Also read: {', '.join(f'`{alias}`' for alias in row.aliases)}." if row.aliases else ""
    return f"`{row.name}`", _value(row), _default(row), row.help + also


def _value(row: Variable) -> str:
    if row.choices:
        return ", ".join(f"`{choice}`" for choice in row.choices)
    if row.kind in {"int", "float"}:
        return bounds(row).removeprefix("from ")
    return {
        "bool": "`true`, `false`",
        "raw": "text",
        "secret": "text",
        "word": "name",
        "names": "names, with commas",
    }.get(row.kind, row.kind)


def _default(row: Variable) -> str:
    if row.otherwise:
        return row.otherwise
    return "nothing" if row.default in {None, ""} else f"`{row.default}`"


if __name__ == "__main__":
    sys.stdout.write(page())
