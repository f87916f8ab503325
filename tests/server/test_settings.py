"""What an answering process is told, from where, and that the project it is started in has no say."""

from __future__ import annotations

import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from pipeline.cli.serve import serving_environment
from pipeline.config.keys import HARNESSES as KEYS
from pipeline.settings import load_settings
from serve.config import table
from serve.errors import ConfigError
from serve.harnesses import NAMES
from serve.settings import OPTIONS, Bounds, ScoutSettings, ServeSettings, load, read
from tests.server.client import SECONDS, SERVE, RawClient, environment, text_of

EVERY = {
    "RETRIEVAL_HARNESS": "omp",
    "RETRIEVAL_SELECTOR": "endpoint",
    "RETRIEVAL_SCOUT_TIMEOUT": "9.5",
    "RETRIEVAL_OMP_COMMAND": "~/bin/omp",
    "RETRIEVAL_SCOUT_MODEL": "some/model",
    "RETRIEVAL_SCOUT_MODELS": "~/models.yml",
    "RETRIEVAL_SCOUT_URL": "http://127.0.0.1:1/v1",
    "RETRIEVAL_SCOUT_API_KEY": "sk-secret",
    "RETRIEVAL_SCOUT_VARIABLES": "A_KEY, B_KEY,A_KEY",
    "RETRIEVAL_SCOUT_STANDBY": "no",
    "RETRIEVAL_IWEC_COMMAND": "off",
    "RETRIEVAL_IWE_BUDGET": "0.5",
    "RETRIEVAL_MAX_ANSWER_CHARS": "5000",
    "RETRIEVAL_PROJECT_MAX_FILES": "7",
    "RETRIEVAL_PROJECT_MAX_BYTES": "70000",
    "RETRIEVAL_USAGE": "off",
    "RETRIEVAL_USAGE_ROWS": "3",
    "RETRIEVAL_HTTP_TOKEN": "0123456789abcdef",
    "RETRIEVAL_CHROMA_TOKEN": "chroma-secret",
    "RETRIEVAL_EMBEDDING_QUERY_PREFIX": "query: ",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project that a harness works in, as the current folder."""
    made = tmp_path / "foreign"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def settings_of(home: Path, **variables: str) -> ServeSettings:
    return load({"HOME": str(home), **variables})


def user_file(home: Path, text: str) -> Path:
    path = home / ".config" / "retrieval" / ".env"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_anything_set_all_is_as_it_is_documented(home: Path) -> None:
    settings = settings_of(home)
    plain = ServeSettings(data_dir=home / ".local/share/retrieval", embedder=settings.embedder)

    assert settings == plain
    assert (settings.embedder.kind, settings.embedder.cache_dir) == ("builtin", plain.data_dir / "models")


def test_every_variable_reaches_its_setting(home: Path) -> None:
    settings = settings_of(home, **EVERY)

    assert settings == ServeSettings(
        data_dir=home / ".local/share/retrieval",
        harness="omp",
        embedder=settings.embedder,
        chroma_token="chroma-secret",
        scout=ScoutSettings(
            selector="endpoint",
            timeout=9.5,
            omp_command=str(home / "bin/omp"),
            model="some/model",
            models_file=home / "models.yml",
            url="http://127.0.0.1:1/v1",
            api_key="sk-secret",
            pass_variables=("A_KEY", "B_KEY"),
            standby=False,
        ),
        bounds=Bounds(answer_chars=5000, project_files=7, project_bytes=70000, usage_rows=3),
        iwec_command="off",
        iwe_budget=0.5,
        usage=False,
        http_token="0123456789abcdef",
    )
    assert settings.embedder.query_prefix == "query: "


def test_no_setting_is_left_that_nothing_sets(home: Path) -> None:
    """A field that is added gets a variable, or this test a reason."""
    plain, changed = settings_of(home), settings_of(home, **EVERY, RETRIEVAL_HOME="~/elsewhere")

    for before, after in ((plain, changed), (plain.scout, changed.scout), (plain.bounds, changed.bounds)):
        assert [item.name for item in fields(before) if getattr(before, item.name) == getattr(after, item.name)] == []


def test_the_defaults_in_the_table_are_those_of_the_settings(home: Path) -> None:
    """The table is what people read."""
    shown = {
        "RETRIEVAL_SELECTOR": ScoutSettings.selector,
        "RETRIEVAL_SCOUT_TIMEOUT": ScoutSettings.timeout,
        "RETRIEVAL_MAX_ANSWER_CHARS": Bounds.answer_chars,
        "RETRIEVAL_PROJECT_MAX_FILES": Bounds.project_files,
        "RETRIEVAL_PROJECT_MAX_BYTES": Bounds.project_bytes,
        "RETRIEVAL_USAGE_ROWS": Bounds.usage_rows,
        "RETRIEVAL_IWE_BUDGET": ServeSettings.iwe_budget,
    }

    assert {name: table.BY_NAME[name].default for name in shown} == shown


def test_there_is_one_list_of_harnesses_in_three_places() -> None:
    assert table.HARNESSES == NAMES == KEYS


def test_secrets_are_not_in_the_text_of_the_settings(home: Path) -> None:
    shown = repr(settings_of(home, **EVERY))

    assert [text for text in ("sk-secret", "chroma-secret", "0123456789abcdef") if text in shown] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("RETRIEVAL_HARNESS", "vim"),
        ("RETRIEVAL_SELECTOR", "best"),
        ("RETRIEVAL_SCOUT_TIMEOUT", "0"),
        ("RETRIEVAL_SCOUT_VARIABLES", "A,,B"),
        ("RETRIEVAL_SCOUT_VARIABLES", "A=1"),
        ("RETRIEVAL_SCOUT_VARIABLES", "A B"),
        ("RETRIEVAL_SCOUT_STANDBY", "2"),
        ("RETRIEVAL_IWE_BUDGET", "0"),
        ("RETRIEVAL_MAX_ANSWER_CHARS", "999"),
        ("RETRIEVAL_PROJECT_MAX_FILES", "0"),
        ("RETRIEVAL_PROJECT_MAX_BYTES", "1"),
        ("RETRIEVAL_USAGE_ROWS", "-1"),
        ("RETRIEVAL_SCOUT_URL", "ftp://x"),
        ("RETRIEVAL_SCOUT_API_KEY", "two words"),
    ],
)
def test_a_value_that_does_not_fit_is_one_clear_error(home: Path, name: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of(home, **{name: text})

    assert (caught.value.code, caught.value.where) == (2, f"environment variable {name}")
    assert caught.value.next_step
    assert "two words" not in str(caught.value)


# --------------------------------------------------------------------------------------------------- where it is looked for


def test_the_env_file_beside_the_users_settings_is_read(home: Path, foreign: Path) -> None:
    user_file(home, "RETRIEVAL_HOME=data\nRETRIEVAL_HARNESS=codex\n")

    settings = settings_of(home)
    assert (settings.data_dir, settings.harness) == (home / ".config/retrieval/data", "codex")
    assert settings_of(home, RETRIEVAL_HARNESS="omp").harness == "omp"


def test_the_env_file_beside_the_named_configuration_is_read_instead(home: Path, tmp_path: Path) -> None:
    user_file(home, "RETRIEVAL_HARNESS=codex\n")
    (tmp_path / "etc").mkdir()
    config = tmp_path / "etc" / "sources.toml"
    config.write_text("", encoding="utf-8")
    (tmp_path / "etc" / ".env").write_text("RETRIEVAL_HARNESS=hermes\n", encoding="utf-8")

    assert settings_of(home, RETRIEVAL_CONFIG=str(config)).harness == "hermes"


def test_a_named_configuration_that_is_not_there_is_an_error(home: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of(home, RETRIEVAL_CONFIG="~/nothing.toml")

    assert caught.value.what == f"there is no configuration file {home / 'nothing.toml'}"


def test_the_project_that_a_server_is_started_in_decides_nothing(home: Path, foreign: Path) -> None:
    """A cloned repository could otherwise name an index, a program to run, and where texts are sent."""
    (foreign / ".env").write_text(
        "RETRIEVAL_HOME=evil\nRETRIEVAL_OMP_COMMAND=./evil.sh\nRETRIEVAL_SCOUT_URL=http://evil.example\n",
        encoding="utf-8",
    )
    (foreign / "sources.toml").write_text("[[[", encoding="utf-8")

    assert settings_of(home) == ServeSettings(
        data_dir=home / ".local/share/retrieval", embedder=settings_of(home).embedder
    )


def test_modules_of_the_project_are_not_imported(foreign: Path) -> None:
    """`python -m` looks into the current folder first."""
    for name in ("mcp", "anyio", "msgspec", "secrets"):
        (foreign / f"{name}.py").write_text(f"open({name + '.ran'!r}, 'w')\nraise SystemExit(9)\n", encoding="utf-8")
    with RawClient(SERVE, cwd=foreign) as raw:
        raw.initialize()
        assert text_of(raw.call(query="x")).startswith("error: there is no index yet")
        assert raw.end() == 0

    assert list(foreign.glob("*.ran")) == []


def test_a_current_folder_that_is_gone_keeps_no_server_from_starting(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *SERVE]
    with RawClient(command, cwd=gone) as raw:
        raw.initialize()
        assert raw.end() == 0


def test_what_the_scout_may_see_is_taken_from_wherever_it_is_set(home: Path) -> None:
    user_file(home, "RETRIEVAL_SCOUT_VARIABLES=A_KEY,B_KEY,C_KEY\nA_KEY=from the file\nB_KEY=from the file\nOTHER=x\n")

    assert read({"HOME": str(home), "B_KEY": "real"}).passed_on == {"A_KEY": "from the file", "B_KEY": "real"}


def test_warnings_are_given_and_do_not_stop(home: Path) -> None:
    user_file(home, "RETRIEVAL_HARNES=omp\n???\n")
    warnings = [warning.what for warning in read({"HOME": str(home)}).warnings]

    assert len(warnings) == 2
    assert "the variable RETRIEVAL_HARNES is unknown and has no effect" in warnings


# ---------------------------------------------------------------------------------------------------------------- options


def test_an_option_wins_over_the_environment_and_is_named_in_errors(home: Path) -> None:
    environ = {"HOME": str(home), "RETRIEVAL_HARNESS": "omp"}

    assert load(environ, {"RETRIEVAL_HARNESS": "codex"}).harness == "codex"
    with pytest.raises(ConfigError) as caught:
        load(environ, {"RETRIEVAL_HARNESS": "vim"})
    assert caught.value.where == "--harness"


def run(*options: str, cwd: Path, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*SERVE, *options],
        cwd=cwd,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            ["--harnes", "omp"],
            'error: there is no option "--harnes"\n  at python -m serve\n  next: did you mean "--harness"?\n',
        ),
        (["--harness"], "error: --harness needs a value\n  at python -m serve\n  next: run it with --help\n"),
        (["--harness="], "error: --harness needs a value\n  at python -m serve\n  next: run it with --help\n"),
        (["--selector=best"], 'error: RETRIEVAL_SELECTOR is "best"\n  at --selector\n  next: did you mean "rest"?\n'),
        (["omp"], 'error: there is no option "omp"\n  at python -m serve\n  next: run `python -m serve --help`\n'),
    ],
)
def test_a_command_line_that_does_not_fit_ends_at_once(options: list[str], error: str, tmp_path: Path) -> None:
    code, out, shown = run(*options, cwd=tmp_path)

    assert (code, out) == (2, "")
    assert shown.splitlines()[:2] == error.splitlines()[:2]
    assert shown.splitlines()[2].startswith("  next: ")


def test_help_names_every_option(tmp_path: Path) -> None:
    code, out, shown = run("--help", cwd=tmp_path)

    assert (code, shown) == (0, "")
    assert [option for option in (*OPTIONS.values(), "--http") if f"  {option} " not in out] == []


# --------------------------------------------------------------------------------------------- with the command line's settings


def test_a_server_started_by_the_command_line_reads_what_that_reads(
    home: Path, foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`retrieval serve` is typed by a person, whose current folder is their own word: its `.env` counts."""
    (foreign / ".env").write_text(
        "PLACE=$EMPTY_OR_NOT/x\nRETRIEVAL_HOME=in$here\nRETRIEVAL_OMP_COMMAND=bin/omp\nRETRIEVAL_SCOUT_MODELS=models.yml\n"
        "RETRIEVAL_EMBEDDING_QUERY_PREFIX='query: '\nRETRIEVAL_SCOUT_VARIABLES=KEY\nKEY='a $ecret'\nEMBEDDING_MODEL=m\n",
        encoding="utf-8",
    )
    (foreign / "sources.toml").write_text('[[sources]]\nname = "a"\npath = "a"\n', encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("here", "price")
    told = serving_environment()
    monkeypatch.chdir(home)
    settings = load(told)
    monkeypatch.chdir(foreign)

    assert settings.data_dir == foreign / "inprice" == load_settings(with_sources=False).data_dir
    assert settings.scout.omp_command == str(foreign / "bin/omp")
    assert settings.scout.models_file == foreign / "models.yml"
    assert settings.embedder.query_prefix == "query: "
    assert told["RETRIEVAL_CONFIG"] == str(foreign / "sources.toml")
    assert told["KEY"] == "a $ecret"
    assert "PLACE" not in told


def test_a_folder_with_a_dollar_in_its_name_is_handed_on_as_it_is(
    home: Path, foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RETRIEVAL_HOME", "~/a$$b")

    assert load(serving_environment()).data_dir == home / "a$b"
