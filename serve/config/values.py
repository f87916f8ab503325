"""What reading variables needs to know and gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class ConfigWarning:
    """Something in the configuration that works, but surely not as meant. Fields as in `OperatorError`."""

    what: str
    where: str = ""
    next_step: str = ""

    def as_dict(self) -> dict[str, str]:
        """The warning as `--json` prints it."""
        return {"warning": self.what, "where": self.where, "next": self.next_step}

    def __str__(self) -> str:
        """The warning as a terminal shows it."""
        lines = [f"warning: {self.what}"]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.next_step:
            lines.append(f"  next: {self.next_step}")
        return "\n".join(lines)


class Machine(NamedTuple):
    """What a configuration is read on. environ: with `.env` files in it. os_name: as `os.name` has it."""

    environ: Mapping[str, str]
    home: str
    cwd: Path
    os_name: str
