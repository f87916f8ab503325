"""The commands that answer as agents are answered: `retrieve`, `references` and `serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.common import ConfigOption, JsonFlag


def add_to(app: typer.Typer) -> None:
    """Put these commands among the others."""
    app.command(short_help="Get the one skill for a task, as an agent gets it.")(retrieve)
    app.command(short_help="Look something up in the references.")(references)
    app.command(short_help="Answer agents over MCP.")(serve)


def retrieve(
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help="The task, or a skill's exact ID.")],
    harness: Annotated[
        str, typer.Option(metavar="NAME", help="Answer as for this harness, and copy the package into its lane.")
    ] = "",
    selector: Annotated[str, typer.Option(metavar="NAME", help="Who chooses: auto, omp, endpoint or rank.")] = "",
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Get the one skill for a task, as an agent gets it from the MCP tool retrieve_skill.

    Candidates are ranked, the selector chooses at most one of them, its SKILL.md is printed, and its package is copied into
    the lane of the harness. Exit code 0 also when none fits, 1 when no choice could be made, 3 when copying failed.
    """
    from pipeline.cli.retrieve import retrieve

    return retrieve(" ".join(query), config, harness=harness, selector=selector, as_json=as_json)


def references(
    query: Annotated[
        list[str],
        typer.Argument(metavar="QUERY...", help="What you want to know; the one word info shows what is indexed."),
    ],
    limit: Annotated[int, typer.Option(metavar="N", help="How many sections at most.", min=1, max=20)] = 5,
    max_chars: Annotated[
        int, typer.Option("--max-chars", metavar="N", help="How many characters of text at most.", min=200, max=100_000)
    ] = 12_000,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Look something up in the references: sections with their file, lines, version and hash.

    retrieval references info shows the documents, sections and chunk sizes, and how they are embedded.
    """
    from pipeline.cli.references import references

    return references(query, limit, max_chars, config, as_json=as_json)


def serve(
    harness: Annotated[str, typer.Option(metavar="NAME", help="The harness that asks.")] = "",
    selector: Annotated[str, typer.Option(metavar="NAME", help="Who chooses: auto, omp, endpoint or rank.")] = "",
    http: Annotated[
        str, typer.Option(metavar="[HOST:]PORT", help="Over HTTP on this machine, with RETRIEVAL_HTTP_TOKEN as token.")
    ] = "",
    config: ConfigOption = "",
) -> int:
    """Answer agents over MCP, on standard input and output, until the caller closes them.

    Two tools: retrieve_skill and retrieve_reference. Harnesses start this themselves; python -m serve is the same without
    the settings of a .env beside sources.toml.
    """
    from pipeline.cli.serve import serve

    return serve(config, harness=harness, selector=selector, http=http)
