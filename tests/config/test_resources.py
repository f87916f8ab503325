"""Files that travel with the program, and the errors of the building side."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import BuildError, ConfigError, LockedError, UnknownSourceError
from pipeline.resources import BUNDLED, bundled
from serve.errors import ExitCode, OperatorError


@pytest.mark.parametrize("name", BUNDLED)
def test_in_a_checkout_the_files_at_its_top_are_used(name: str, root: Path) -> None:
    assert bundled(name) == root / name
    assert bundled(name).exists()


@pytest.mark.parametrize("name", BUNDLED)
def test_in_an_installation_the_files_inside_the_package_are_used(name: str, tmp_path: Path) -> None:
    package = tmp_path / "site-packages/pipeline"
    inside = package / "_bundled" / name
    inside.parent.mkdir(parents=True)
    inside.touch()
    (
        tmp_path / "site-packages" / name.split("/", maxsplit=1)[0]
    ).touch()  # something else of that name beside the package

    assert bundled(name, package) == inside


def test_a_file_that_the_installation_has_lost_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        bundled("taxonomy.toml", tmp_path / "pipeline")

    assert caught.value.what == "the installation lacks taxonomy.toml"
    assert caught.value.where == str(tmp_path / "pipeline/_bundled/taxonomy.toml")
    assert caught.value.code == ExitCode.FAILED


def test_only_files_that_travel_can_be_asked_for() -> None:
    with pytest.raises(KeyError):
        bundled("pyproject.toml")


def test_the_wheel_carries_exactly_the_files_that_can_be_asked_for(root: Path) -> None:
    import tomllib

    build = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]

    assert build["targets"]["wheel"]["force-include"] == {name: f"pipeline/_bundled/{name}" for name in BUNDLED}


@pytest.mark.parametrize(
    ("error", "code"),
    [(ConfigError("x"), 2), (UnknownSourceError("x"), 2), (BuildError("x"), 1), (LockedError(Path("lock"), {}), 5)],
)
def test_each_error_has_its_exit_code(error: OperatorError, code: int) -> None:
    assert (int(error.code), error.as_dict()["code"]) == (code, code)


def test_a_held_lock_names_its_holder() -> None:
    holder = {"pid": 4711, "command": "retrieval build\x1b[31m", "since": 1.0}
    error = LockedError(Path("data/writer.lock"), holder, 2.5)

    assert str(error) == (
        "error: another run still writes to this data directory after 2.5 s of waiting: "
        'process 4711 ("retrieval build�[31m")\n'
        "  at data/writer.lock\n"
        "  next: wait until it ends, or give RETRIEVAL_LOCK_TIMEOUT more seconds"
    )
    assert error.as_dict()["holder"] == holder


def test_a_lock_without_a_name_is_still_an_error() -> None:
    assert (
        LockedError(Path("lock"), {}).what
        == "another run still writes to this data directory: a process that left no name"
    )
