"""`.env` files: what they say, and what they cannot change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.config.env import Environment, read_env_file
from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, text: str, real: dict[str, str] | None = None) -> Environment:
    (folder / ".env").write_text(text, encoding="utf-8", newline="")
    file = read_env_file(folder / ".env", real or {})
    assert file is not None
    return Environment(real or {}, (file,))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=one", "one"),
        ("export A=one", "one"),
        ("  A = one  ", "one"),
        ("A=one # a comment", "one"),
        ("A=one#two", "one#two"),
        ('A="one # two"', "one # two"),
        ("A='one # two' # three", "one # two"),
        ('A="one\\ttwo"', "one\ttwo"),
        ('A="one\ntwo"', "one\ntwo"),
        ("A='a ${B} $C'", "a ${B} $C"),
        ("A=", ""),
        ("A= # nothing", ""),
        ("A=${HOME}/x", "/home/ada/x"),
        ("B=1\nA=${B}${B}", "11"),
        ("A=${NOPE:-~/x}", "~/x"),
        ("A=$HOME/x", "$HOME/x"),
        ("A=pa$$word", "pa$$word"),
        ("A=x=y", "x=y"),
        ("\ufeffA=one", "one"),
        ("A=one\r\n", "one"),
        ("A=first\nA=second", "second"),
        ("A=技能", "技能"),
    ],
)
def test_a_line_is_understood(tmp_path: Path, line: str, value: str) -> None:
    assert read(tmp_path, line, {"HOME": "/home/ada"})["A"] == value


def test_the_real_environment_wins(tmp_path: Path) -> None:
    environ = read(tmp_path, "A=file\nB=${A}", {"A": "real"})

    assert environ["A"] == "real"
    assert environ["B"] == "real"
    assert environ.where("A") == "environment variable A"


def test_reading_leaves_the_process_alone(tmp_path: Path) -> None:
    before = dict(os.environ)
    read(tmp_path, "RETRIEVAL_HOME=/srv\nNEW_NAME_OF_A_TEST=1\n", before)

    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("text", "line"),
    [("A=1", 1), ("\n\nA=1", 3), ("# x\n  # y\n\n \texport A=1", 4), ('B="1\n2\n3"\nA=1', 4), ("B=1\r\n\r\nA=1", 3)],
)
def test_a_value_knows_its_line(tmp_path: Path, text: str, line: int) -> None:
    assert read(tmp_path, text).where("A") == f"{tmp_path}/.env:{line}"


def test_a_value_that_needs_an_unset_variable_is_an_error_when_it_is_wanted(tmp_path: Path) -> None:
    environ = read(tmp_path, "GOOD=1\n\nA=${NOPE}/x\nB=${A}")

    assert environ["GOOD"] == "1"
    for name, line in (("A", 3), ("B", 4)):
        with pytest.raises(ConfigError) as caught:
            environ[name]
        assert caught.value.what == f'{name} cannot be read: it uses "NOPE", which is not set'
        assert caught.value.where == f"{tmp_path}/.env:{line}"


def test_values_that_double_each_other_are_cut_off(tmp_path: Path) -> None:
    text = "V0=xx\n" + "".join(f"V{n}=${{V{n - 1}}}${{V{n - 1}}}\n" for n in range(1, 64))
    environ = read(tmp_path, text)

    assert environ["V10"] == "xx" * 1024
    with pytest.raises(ConfigError) as caught:
        environ["V63"]
    assert caught.value.what == "V63 cannot be read: it is too long once its variables are filled in"


@pytest.mark.parametrize(
    "text", ['\nRETRIEVAL_HOME="unclosed', "\nRETRIEVAL_HOME", "\nHERMES_HOME /srv", "\nEMBEDDING_URL: x"]
)
def test_a_broken_line_that_concerns_us_is_an_error_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)

    assert caught.value.where == f"{tmp_path}/.env:2"
    assert caught.value.what.startswith("a line of .env cannot be read: ")


def test_a_broken_line_of_somebody_else_is_a_warning(tmp_path: Path) -> None:
    environ = read(tmp_path, "A=1\nwhat is this\nB=2\n")
    (warning,) = environ.files[0].warnings

    assert (environ["A"], environ["B"]) == ("1", "2")
    assert warning.what == 'a line of .env cannot be read: "what is this"'
    assert warning.where == f"{tmp_path}/.env:2"


def test_a_secret_in_a_broken_line_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, 'RETRIEVAL_EMBEDDING_API_KEY="hush-hush')

    assert "hush" not in str(caught.value)


def test_a_folder_called_env_is_not_a_file_of_ours(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()

    assert read_env_file(tmp_path / ".env", {}) is None


def test_no_file_is_no_file(tmp_path: Path) -> None:
    assert read_env_file(tmp_path / ".env", {}) is None


@pytest.mark.parametrize(
    ("content", "what", "line"),
    [
        (b"A=1\nB=caf\xe9\n", ".env is not UTF-8", ":2"),
        (b"A=" + b"x" * 300_000, ".env is larger than 256 KB", ""),
        (b"A=1\nB=" + b" " * 9000 + b"x", "a line of .env is longer than 8192 characters", ":2"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path: Path, content: bytes, what: str, line: str) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_env_file(tmp_path / ".env", {})

    assert (caught.value.what, caught.value.where) == (what, f"{tmp_path}/.env{line}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("AB_=\"'#$\\{}\n\r :-é", max_size=60))
def test_any_file_gives_values_or_a_config_error(tmp_path: Path, text: str) -> None:
    (tmp_path / ".env").write_text(text, encoding="utf-8", newline="")
    file = read_env_file(tmp_path / ".env", {"B": "b"})
    environ = Environment({"B": "b"}, (file,) if file else ())

    assert len(environ) == len(list(environ))
    for name in environ:
        try:
            place = environ.where(name) if isinstance(environ[name], str) else ""
        except ConfigError as error:
            place = error.where
        assert place.startswith((f"{tmp_path}/.env:", "environment variable "))
