"""Finds the files that travel with the program, in a checkout and in an installed wheel alike."""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import BuildError

# What the wheel carries in `pipeline/_bundled/`, each under the name it has at the top of a checkout.
BUNDLED = ("dodo.py", "taxonomy.toml", "sources.example.toml", "examples/library")


def bundled(name: str, package: Path | None = None) -> Path:
    """The absolute path of one of `BUNDLED`; `package` is the folder of `pipeline` when it is not this one.

    Raises KeyError for a name that does not travel, BuildError when the installation has lost the file.
    """
    if name not in BUNDLED:
        raise KeyError(name)
    folder = package or Path(__file__).resolve().parent
    checkout = folder.parent
    root = checkout if (checkout / "pyproject.toml").is_file() else folder / "_bundled"
    path = root / name
    if not path.exists():
        raise BuildError(
            f"the installation lacks {name}",
            where=str(path),
            next_step="install the package again",
        )
    return path
