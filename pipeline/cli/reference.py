"""Makes `docs/cli.md` from the commands themselves: `python -m pipeline.cli.reference > docs/cli.md`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from pipeline.cli.app import app
from pipeline.cli.codes import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INTRODUCTION = """# Command line

`retrieval COMMAND [OPTIONS]`; `hermes-retrieval` is the same program. `--help` or `-h` works everywhere.

This page is made from the program itself: `python -m pipeline.cli.reference > docs/cli.md`.

## What all commands share

- `--json` prints one JSON value on standard output, errors included. Without it people are the readers: results go to
  standard output, errors to standard error.
- Colours and progress bars appear on a terminal only; `NO_COLOR` and `TERM=dumb` switch colours off there too.
- Text from skills, paths and files is foreign: control sequences and marks that reorder or hide text are taken out of
  what is printed, and written as `\\u....` escapes in JSON.
- `--config FILE` names the `sources.toml` to use; where it is looked for otherwise, and all variables, are in
  [configuration.md](configuration.md).

An error says what happened, where, and what to do next; in JSON it is `{"error", "where", "next", "code"}`:

```text
error: a [[sources]] block has an unknown key "pth"
  at /home/me/.config/retrieval/sources.toml:7
  next: did you mean "path"?
```

## Exit codes

"""
SEARCH = """
The answer of `--json`, and each line of `--stdin`:

| field | meaning |
|---|---|
| `query` | the query as it was understood |
| `results` | the rows, best first |
| `lanes` | for each lane whether it was `used`, and the `reason` why not |
| `generation` | the name of the index that answered |
| `age_seconds` | seconds since that index was published |
| `skills` | how many skills it holds |
| `milliseconds` | how long the answer took |

A row: `id`, `name`, `description`, `source`, `state`, `categories`, `tags`, `path`, `duplicates`, its `score` (`base_score`,
the fused ranks, plus the tie-breaker that `lexical_score` gives), and per lane `ranks`, `scores` and `shares`; with
`--explain` also `terms`, the words that counted in the lexical lane.
"""


def page() -> str:
    """The whole page, Markdown."""
    group: Any = typer.main.get_command(app)
    root = group.make_context("retrieval", [], resilient_parsing=True)
    codes = _table(("code", "meaning"), ((str(int(code)), meaning) for code, meaning in MEANINGS.items()))
    parts = [INTRODUCTION, codes]
    parts += [_command(command, root) for command in group.commands.values() if not command.hidden]
    return "".join(parts)


def _command(command: Any, parent: Any) -> str:
    context = command.make_context(command.name, [], parent=parent, resilient_parsing=True)
    commands = getattr(command, "commands", {})
    if commands:
        inner = "".join(_command(each, context) for each in commands.values() if not each.hidden)
        return f"\n## {context.command_path}\n\n{_flowed(command.help)}\n{inner}"
    usage = context.get_usage().removeprefix("Usage: ")
    more = SEARCH if command.name == "search" else ""
    options = _table(("argument or option", "meaning"), map(_parameter, command.params))
    return f"\n## {context.command_path}\n\n```text\n{usage}\n```\n\n{_flowed(command.help)}\n\n{options}{more}"


def _flowed(text: str) -> str:
    """A help text with its paragraphs as they are and no indentation."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _parameter(parameter: Any) -> tuple[str, str]:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar}`", parameter.help
    value = "" if parameter.is_flag else f" {parameter.metavar}"
    shown = isinstance(parameter.default, int) and not parameter.is_flag
    return f"`{', '.join(parameter.opts)}{value}`", parameter.help + (
        f" Default: {parameter.default}." if shown else ""
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(page())
