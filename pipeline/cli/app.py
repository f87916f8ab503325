"""The command line as a whole: each command's name, options and help. What they do stands in the modules beside this one."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.common import ConfigOption, JsonFlag

app = typer.Typer(
    name="retrieval",
    help="Keep a large library of agent skills out of the prompt, and every skill within reach.",
    epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 done with problems or reviews, 4 a service is unreachable, "
    "5 another run holds the lock, 6 the index does not fit this program, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Sources = Annotated[list[str] | None, typer.Argument(metavar="[SOURCES]...", help="Scan only these sources.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]
Wait = Annotated[float | None, typer.Option(help="Seconds to wait for another run to finish.", min=0)]
SkillId = Annotated[str, typer.Argument(metavar="ID", help="A skill's exact ID, source:folder.")]


def _version(show: bool) -> None:
    if show:
        from pipeline.cli.inspect import print_version

        print_version()
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Keep a large library of agent skills out of the prompt, and every skill within reach."""


@app.command()
def init(
    folders: Annotated[list[str] | None, typer.Argument(metavar="[FOLDERS]...", help="Folders of skills.")] = None,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Write a sources.toml for your folders (or for the bundled example library)."""
    from pipeline.cli.setup import init

    return init(folders or [], config, as_json=as_json)


@app.command()
def build(
    sources: Sources = None,
    dry_run: DryRun = False,
    wait: Wait = None,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Bring the index to what the sources are now. Does only what changed."""
    from pipeline.cli.build import build

    return build(sources or [], config, dry_run=dry_run, wait=wait, as_json=as_json)


@app.command(hidden=True)
def sync(
    sources: Sources = None,
    dry_run: DryRun = False,
    wait: Wait = None,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """The same as build."""
    from pipeline.cli.build import build

    return build(sources or [], config, dry_run=dry_run, wait=wait, as_json=as_json)


@app.command()
def search(
    query: Annotated[
        list[str] | None, typer.Argument(metavar="QUERY", help="What you need, in your own words.")
    ] = None,
    limit: Annotated[int, typer.Option(help="How many skills at most.", min=1, max=200)] = 8,
    source: Annotated[list[str] | None, typer.Option(help="Only this source (repeatable).")] = None,
    category: Annotated[list[str] | None, typer.Option(help="Only this category (repeatable).")] = None,
    state: Annotated[list[str] | None, typer.Option(help="Only this state: hidden, cold or archived.")] = None,
    harness: Annotated[str, typer.Option(help="As this harness sees it: what it shows itself is left out.")] = "",
    explain: Annotated[bool, typer.Option("--explain", help="Show how each score came about.")] = False,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="A query or JSON object a line in, a JSON result a line out.")
    ] = False,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Find skills for what you need."""
    from pipeline.cli.search import Filters, search

    filters = Filters(limit, tuple(source or ()), tuple(category or ()), tuple(state or ()), harness)
    return search(" ".join(query or []), filters, config, explain=explain, stdin=stdin, as_json=as_json)


@app.command()
def show(skill: SkillId, config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """Show one skill as the index knows it."""
    from pipeline.cli.inspect import show

    return show(skill, config, as_json=as_json)


@app.command()
def why(skill: SkillId, config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """Explain why a skill is where it is, and what last changed it."""
    from pipeline.cli.inspect import why

    return why(skill, config, as_json=as_json)


@app.command()
def status(
    problems: Annotated[bool, typer.Option("--problems", help="List what could not be indexed.")] = False,
    review: Annotated[bool, typer.Option("--review", help="List skills that wait for a category.")] = False,
    duplicates: Annotated[bool, typer.Option("--duplicates", help="List duplicates and their winners.")] = False,
    suppressed: Annotated[bool, typer.Option("--suppressed", help="List skills a harness shows itself.")] = False,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Show what is indexed, per source, and what is not and why."""
    from pipeline.cli.status import status

    chosen = [
        name
        for name, wanted in (
            ("problem", problems),
            ("review", review),
            ("duplicate", duplicates),
            ("suppressed", suppressed),
        )
        if wanted
    ]
    return status(chosen, config, as_json=as_json)


@app.command()
def verify(config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """Hash everything again and say where the index and the sources disagree. Changes nothing."""
    from pipeline.cli.upkeep import verify

    return verify(config, as_json=as_json)


@app.command()
def doctor(config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """Check configuration, folders, store, model and optional programs."""
    from pipeline.cli.upkeep import doctor

    return doctor(config, as_json=as_json)


@app.command()
def graph(
    form: Annotated[str, typer.Option("--format", help="text or dot.")] = "text",
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Show the task graph and which tasks are current."""
    from pipeline.cli.upkeep import graph

    return graph(form, config, as_json=as_json)


@app.command()
def clean(
    memo: Annotated[
        bool, typer.Option("--memo", help="Also forget memoised results: the next build computes all again.")
    ] = False,
    dry_run: DryRun = False,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Remove what builds have made. Sources and configuration are never touched."""
    from pipeline.cli.upkeep import clean

    return clean(config, memo=memo, dry_run=dry_run, as_json=as_json)
