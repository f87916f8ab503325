"""The commands of `retrieval skills`."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.common import ConfigOption, JsonFlag

app = typer.Typer(
    name="skills",
    help="List skills, look at one, edit one.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

SkillId = Annotated[str, typer.Argument(metavar="ID", help="The skill's exact ID, SOURCE:FOLDER.")]


@app.command("list", short_help="List skills.")
def list_skills(
    source: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this source (repeatable).")] = None,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE", help="Only native, hidden, cold or archived ones (repeatable).")
    ] = None,
    category: Annotated[list[str] | None, typer.Option(metavar="ID", help="Only this category (repeatable).")] = None,
    harness: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only skills in this harness's own folders (repeatable).")
    ] = None,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """List the skills that the last build saw, indexed or not, and how many there are.

    A source is scanned by `retrieval build`, not here. What could not be indexed is listed by `retrieval status --problems`.
    """
    from pipeline.admin.skills import Filters
    from pipeline.cli.skills import list_skills

    given = (tuple(values or ()) for values in (source, state, category, harness))
    return list_skills(Filters(*given), config, as_json=as_json)


@app.command(short_help="Show a skill with its files and its text.")
def inspect(skill: SkillId, config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """Show all that is known about a skill, the files beside its SKILL.md, and the text itself as it is now."""
    from pipeline.cli.skills import inspect

    return inspect(skill, config, as_json=as_json)


@app.command(short_help="Edit a skill's SKILL.md.")
def edit(skill: SkillId, config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """Open a skill's SKILL.md in the editor of VISUAL or EDITOR, and read it as a build will.

    Skills that a harness keeps itself, and archived ones, are refused: the error names who changes them. The text as it was is
    kept in the data directory. Exit code 3 when the file has a flaw now that it did not have.
    """
    from pipeline.cli.skills import edit

    return edit(skill, config, as_json=as_json)
