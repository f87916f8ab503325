"""The command line as a whole: each command's name, options and help. What they do stands in the modules beside this one.

`docs/cli.md` is made from this page by `pipeline.cli.reference`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli import codes, projected_app, serving_app, skills_app, watch_app
from pipeline.cli.common import ConfigOption, JsonFlag

app = typer.Typer(
    name="retrieval",
    epilog=f"\b\nExit codes:\n{codes.listed()}",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Sources = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SOURCES]...", help="Scan only these; a block's name stands for all its sources."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]
Wait = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="How long to wait for another run to finish; RETRIEVAL_LOCK_TIMEOUT, or 30.",
        min=0,
        show_default=False,
    ),
]
RebuildStore = Annotated[
    bool, typer.Option("--rebuild-store", help="Begin the vector store anew, from the vectors that are kept.")
]
SkillId = Annotated[str, typer.Argument(metavar="ID", help="The skill's exact ID, SOURCE:FOLDER.")]
Repeated = "(repeatable)."


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --version: print JSON.")] = False,
) -> None:
    """Keep a large library of agent skills out of the prompt, and every skill within reach."""
    if version:
        from pipeline.cli.inspect import print_version

        print_version(as_json=as_json)
        raise typer.Exit
    if as_json and context.invoked_subcommand is not None:
        usage = f"{context.command_path} {context.invoked_subcommand} --json"
        raise typer.BadParameter(f"it belongs behind the command: `{usage}`", param_hint="--json")
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


@app.command(short_help="Write a first sources.toml.")
def init(
    folders: Annotated[list[str] | None, typer.Argument(metavar="[FOLDERS]...", help="Folders of skills.")] = None,
    config: Annotated[str, typer.Option("--config", metavar="FILE", help="The file to write.")] = "",
    as_json: JsonFlag = False,
) -> int:
    """Write a first sources.toml: for the folders you name, or for the bundled example library.

    It goes where the other commands look for it: RETRIEVAL_CONFIG, else your folder of settings. A file that exists is
    never changed.
    """
    from pipeline.cli.setup import init

    return init(folders or [], config, as_json=as_json)


@app.command(short_help="Bring the index up to date with the sources.")
def build(
    sources: Sources = None,
    dry_run: DryRun = False,
    rebuild_store: RebuildStore = False,
    wait: Wait = None,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Bring the index up to date with the sources. Only what changed is done again.

    It may be interrupted or killed at any moment: the index stays as it was, and the next build goes on from what was
    finished. With SOURCES the others stay as they were last seen. sync is the same command.
    """
    from pipeline.cli.build import How, build

    return build(sources or [], config, How(dry_run, rebuild_store, wait), as_json=as_json)


@app.command(hidden=True)
def sync(
    sources: Sources = None,
    dry_run: DryRun = False,
    rebuild_store: RebuildStore = False,
    wait: Wait = None,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """The same as build."""
    from pipeline.cli.build import How, build

    return build(sources or [], config, How(dry_run, rebuild_store, wait), as_json=as_json)


@app.command(short_help="Find skills for what you need.")
def search(
    query: Annotated[
        list[str] | None, typer.Argument(metavar="[QUERY]...", help="What you need, in your own words.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many skills at most.", min=1, max=200)] = 8,
    source: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help=f"Only skills of this source {Repeated}")
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option(metavar="ID", help=f"Only skills of this category {Repeated}")
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE", help=f"Only hidden, cold or archived skills {Repeated}")
    ] = None,
    harness: Annotated[
        str, typer.Option(metavar="NAME", help="As this harness needs it: without the skills that it shows itself.")
    ] = "",
    explain: Annotated[bool, typer.Option("--explain", help="Show how each score came about.")] = False,
    stdin: Annotated[bool, typer.Option("--stdin", help="Answer each line of standard input.")] = False,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Find skills for what you need, by meaning and by words.

    With --stdin each line of standard input is a query, or a JSON object like {"query": "...", "limit": 3} with any of the
    fields limit, source, category, state, harness and explain. For each line one line of JSON is printed at once, in order:
    the answer as --json gives it, or an error. The index is read, the sources are not.
    """
    from pipeline.cli.search import Filters, search

    filters = Filters(limit, tuple(source or ()), tuple(category or ()), tuple(state or ()), harness)
    return search(" ".join(query or []), filters, config, explain=explain, stdin=stdin, as_json=as_json)


@app.command(short_help="Show all that is known about one skill.")
def show(skill: SkillId, config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """Show all that is known about one skill, whatever became of it."""
    from pipeline.cli.inspect import show

    return show(skill, config, as_json=as_json)


@app.command(short_help="Explain why a skill is where it is.")
def why(skill: SkillId, config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """Explain why a skill is where it is, and what last changed it.

    Which rule gave its categories, what suppressed it or took its place, which input changed in the last build that
    concerned it, which steps ran, and where the change was cut off.
    """
    from pipeline.cli.inspect import why

    return why(skill, config, as_json=as_json)


@app.command(short_help="Show what was found, and what became of it.")
def status(
    problems: Annotated[bool, typer.Option("--problems", help="List what could not be indexed, and why.")] = False,
    review: Annotated[bool, typer.Option("--review", help="List the skills that wait for a category.")] = False,
    duplicates: Annotated[bool, typer.Option("--duplicates", help="List duplicates and what stands for them.")] = False,
    suppressed: Annotated[
        bool, typer.Option("--suppressed", help="List the skills that a harness shows itself.")
    ] = False,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Show per source what was found and what became of it: found = indexed + duplicate + suppressed + review + problem.

    Also the age of the index, its lanes, the vector store, warnings, and the versions of what it is made with. This is what
    the last build saw: the sources are not scanned.
    """
    from pipeline.cli.status import status

    wanted = {"problem": problems, "review": review, "duplicate": duplicates, "suppressed": suppressed}
    return status([name for name, chosen in wanted.items() if chosen], config, as_json=as_json)


@app.command(short_help="Compare sources, cards, rows and vectors.")
def verify(config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """Read and hash everything again and say where the published index and the sources disagree. Changes nothing.

    Exit code 0 means that the index is exactly what the sources give, 1 that something disagrees.
    """
    from pipeline.cli.upkeep import verify

    return verify(config, as_json=as_json)


@app.command(short_help="Check configuration, folders, services and model.")
def doctor(config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """Check configuration, folders, vector store, embedder, index and optional programs. Changes nothing."""
    from pipeline.cli.upkeep import doctor

    return doctor(config, as_json=as_json)


@app.command(short_help="Show the task graph with its state.")
def graph(
    form: Annotated[str, typer.Option("--format", metavar="FORM", help="text or dot.")] = "text",
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Show the tasks of a build, what each needs, and its state now.

    current: nothing to do. stale: would run. waiting: runs if what it needs turns out different.
    """
    from pipeline.cli.upkeep import graph

    return graph(form, config, as_json=as_json)


@app.command(short_help="Remove what builds have made.")
def clean(
    memo: Annotated[
        bool, typer.Option("--memo", help="Also forget memoised results: the next build computes all of them again.")
    ] = False,
    dry_run: DryRun = False,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Remove what builds have made. Sources and configuration are never touched.

    Without --memo the vectors stay remembered, so that the next build is quick.
    """
    from pipeline.cli.upkeep import clean

    return clean(config, memo=memo, dry_run=dry_run, as_json=as_json)


watch_app.add_to(app)
serving_app.add_to(app)
for group in (skills_app, projected_app):
    app.add_typer(group.app)
