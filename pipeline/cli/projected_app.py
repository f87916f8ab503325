"""The commands of `retrieval projected`."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.common import ConfigOption, JsonFlag

app = typer.Typer(
    name="projected",
    help="List and remove the copies in harnesses' lanes.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

HarnessOption = Annotated[str, typer.Option("--harness", metavar="NAME", help="Only the copies of this harness.")]


@app.command("list", short_help="List the copies.")
def list_projected(harness: HarnessOption = "", config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """List the copies in the harnesses' lanes, and whatever else lies there.

    ok: as it was written. changed: somebody has changed it, or it was damaged; the next selection of its skill puts it right.
    missing: its folder is gone, or is not this copy any more.
    """
    from pipeline.cli.projected import list_projected

    return list_projected(harness, config, as_json=as_json)


@app.command(short_help="Remove copies.")
def clear(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[IDS]...", help="Exact IDs of skills.")] = None,
    harness: HarnessOption = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Remove all copies, of --harness if that is given.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Remove copies from the harnesses' lanes. The originals are never touched.

    Without IDs and without --all a terminal shows a list to tick. Only what is listed and bears the marker of the same skill
    is removed; all else in a lane stays, and is named. A copy that somebody has changed is moved to `projections/kept`.
    """
    from pipeline.cli.projected import clear

    return clear(ids or [], harness, config, everything=everything, dry_run=dry_run, as_json=as_json)


@app.command(short_help="Put the list of copies in order.")
def repair(config: ConfigOption = "", as_json: JsonFlag = False) -> int:
    """List again what only its marker tells of, forget what is gone, and remove what killed processes left behind."""
    from pipeline.cli.projected import repair

    return repair(config, as_json=as_json)
