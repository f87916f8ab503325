"""How to watch, as the command line says it."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """interval: seconds between looks where there are no events. every: between checks of everything."""

    config: str = ""
    polling: bool = False
    standby: bool = False
    interval: float = 1.0
    every: float = 1800.0

    def arguments(self) -> list[str]:
        """The options of `retrieval watch` that differ from what it does anyway, `standby` and `config` aside."""
        plain = Options()
        said = ["--poll"] if self.polling else []
        said += ["--interval", f"{self.interval:g}"] if self.interval != plain.interval else []
        return said + (["--check-every", f"{self.every:g}"] if self.every != plain.every else [])
