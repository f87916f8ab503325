"""The command `retrieval watch`: its options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.common import ConfigOption, JsonFlag


def add_to(app: typer.Typer) -> None:
    """Put this command among the others."""
    app.command(short_help="Keep the index up to date by itself.")(watch)


def watch(
    *,
    standby: Annotated[
        bool, typer.Option("--standby", help="Where a watcher runs already, wait and take over when it ends.")
    ] = False,
    poll: Annotated[
        bool, typer.Option("--poll", help="Look at the folders again and again instead of waiting for events.")
    ] = False,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time between two such looks, at least.", min=0.1, max=86_400)
    ] = 1,
    check_every: Annotated[
        float,
        typer.Option("--check-every", metavar="SECONDS", help="Time between checks of everything.", min=1, max=604_800),
    ] = 1800,
    install: Annotated[bool, typer.Option("--install", help="Run it as a service of yours, from now on.")] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Stop that service and remove it.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Show how watcher and service are.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --install or --uninstall: show what would be done.")
    ] = False,
    config: ConfigOption = "",
    as_json: JsonFlag = False,
) -> int:
    """Follow the sources and the configuration, and bring the index up to date when something changes.

    There is one watcher for a data directory. It runs until it gets SIGTERM or Ctrl-C, and finishes what it is doing then. A
    configuration that becomes unreadable is reported, and the last good one stays in force. With --install a service of
    your own user does this: a systemd unit, or a launchd agent.
    """
    from pipeline.cli.watch import Asked, watch
    from pipeline.watch.options import Options

    asked = Asked(install, uninstall, status, dry_run)
    return watch(Options(config, poll, standby, interval, check_every), asked, as_json=as_json)
