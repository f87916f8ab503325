"""Environment variables: each has a type and bounds, and a value outside of them is one clear error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.variables import BY_NAME, GROUPS, Variable, parse
from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from tests.config.conftest import World

ROWS = [row for _, rows in GROUPS for row in rows]
NUMBERS = [row for row in ROWS if row.kind in {"int", "float"}]


def value(name: str, text: str) -> object:
    return parse(BY_NAME[name], text, "here")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("RETRIEVAL_CHROMA_SSL", "true", True),
        ("RETRIEVAL_CHROMA_SSL", " YES ", True),
        ("RETRIEVAL_CHROMA_SSL", "off", False),
        ("RETRIEVAL_CHROMA_SSL", "0", False),
        ("RETRIEVAL_CHROMA_PORT", "1", 1),
        ("RETRIEVAL_CHROMA_PORT", "65535", 65535),
        ("RETRIEVAL_LOCK_TIMEOUT", "0", 0.0),
        ("RETRIEVAL_LOCK_TIMEOUT", "2.5", 2.5),
        ("RETRIEVAL_EMBEDDING_TIMEOUT", ".5", 0.5),
        ("RETRIEVAL_CHROMA_MODE", "Server", "server"),
        ("RETRIEVAL_EMBEDDING_QUERY_PREFIX", "query: ", "query: "),
        ("RETRIEVAL_EMBEDDING_MODEL", " bge-m3 ", "bge-m3"),
        ("RETRIEVAL_EMBEDDING_URL", "http://127.0.0.1:8080/v1/embeddings", "http://127.0.0.1:8080/v1/embeddings"),
        ("RETRIEVAL_EMBEDDING_URL", "https://[::1]:8080", "https://[::1]:8080"),
        ("RETRIEVAL_NAMESPACE", "team-a_1", "team-a_1"),
        ("RETRIEVAL_EMBEDDING_API_KEY", "sk-Ab$%{}#", "sk-Ab$%{}#"),
    ],
)
def test_a_good_value_is_taken(name: str, text: str, expected: object) -> None:
    assert value(name, text) == expected


@pytest.mark.parametrize(
    ("name", "text", "what", "next_step"),
    [
        ("RETRIEVAL_CHROMA_SSL", "maybe", 'RETRIEVAL_CHROMA_SSL is "maybe"', "set it to true or false, or remove it"),
        (
            "RETRIEVAL_CHROMA_PORT",
            "0",
            'RETRIEVAL_CHROMA_PORT is "0"',
            "set it to a whole number from 1 to 65535, or remove it",
        ),
        (
            "RETRIEVAL_CHROMA_PORT",
            "65536",
            'RETRIEVAL_CHROMA_PORT is "65536"',
            "set it to a whole number from 1 to 65535, or remove it",
        ),
        (
            "RETRIEVAL_CHROMA_PORT",
            "80.0",
            'RETRIEVAL_CHROMA_PORT is "80.0"',
            "set it to a whole number from 1 to 65535, or remove it",
        ),
        (
            "RETRIEVAL_CHROMA_PORT",
            "1_000",
            'RETRIEVAL_CHROMA_PORT is "1_000"',
            "set it to a whole number from 1 to 65535, or remove it",
        ),
        (
            "RETRIEVAL_EMBEDDING_TIMEOUT",
            "0.01",
            'RETRIEVAL_EMBEDDING_TIMEOUT is "0.01"',
            "set it to a number from 0.1 to 3600, or remove it",
        ),
        (
            "RETRIEVAL_EMBEDDING_TIMEOUT",
            "nan",
            'RETRIEVAL_EMBEDDING_TIMEOUT is "nan"',
            "set it to a number from 0.1 to 3600, or remove it",
        ),
        (
            "RETRIEVAL_EMBEDDING_TIMEOUT",
            "inf",
            'RETRIEVAL_EMBEDDING_TIMEOUT is "inf"',
            "set it to a number from 0.1 to 3600, or remove it",
        ),
        ("RETRIEVAL_CHROMA_MODE", "embeded", 'RETRIEVAL_CHROMA_MODE is "embeded"', 'did you mean "embedded"?'),
        ("RETRIEVAL_CHROMA_MODE", "xyz", 'RETRIEVAL_CHROMA_MODE is "xyz"', "set it to one of embedded, server, cloud"),
        (
            "RETRIEVAL_NAMESPACE",
            "My Skills",
            'RETRIEVAL_NAMESPACE is "My Skills"',
            "set it to up to 39 lower-case letters, digits, - and _, a letter or digit first, or remove it",
        ),
        (
            "RETRIEVAL_EMBEDDING_URL",
            "localhost:8080",
            'RETRIEVAL_EMBEDDING_URL is "localhost:8080"',
            "set it to an http:// or https:// address without a password in it, or remove it",
        ),
        (
            "RETRIEVAL_EMBEDDING_MODEL",
            "a\x1b[31mb",
            'RETRIEVAL_EMBEDDING_MODEL is "a�[31mb"',
            "set it to text on one line, without control characters, or remove it",
        ),
    ],
)
def test_a_bad_value_is_one_clear_error(name: str, text: str, what: str, next_step: str) -> None:
    with pytest.raises(ConfigError) as caught:
        value(name, text)

    assert (caught.value.what, caught.value.where, caught.value.next_step) == (what, "here", next_step)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("RETRIEVAL_EMBEDDING_URL", "https://ada:hush@example.org/v1"),
        ("RETRIEVAL_EMBEDDING_API_KEY", "hush\nhush"),
        ("RETRIEVAL_CHROMA_TOKEN", "hush hush"),
    ],
)
def test_a_refused_secret_is_not_repeated(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        value(name, text)

    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: row.name)
def test_bounds_are_allowed_and_what_lies_beyond_is_refused(row: Variable) -> None:
    step = 1 if row.kind == "int" else 0.001
    for text in (row.low, row.high, row.default):
        if text is not None:
            assert parse(row, f"{text:.0f}" if row.kind == "int" else f"{text}", "here") == text
    for beyond in (row.low - step, row.high + step):
        with pytest.raises(ConfigError):
            parse(row, f"{beyond:.0f}" if row.kind == "int" else f"{beyond:.3f}", "here")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_table_is_complete(row: Variable) -> None:
    assert row.help.endswith(".")
    assert (row.kind == "choice") == bool(row.choices)
    assert (row.kind in {"int", "float"}) == bool(row.high)
    assert row.default in (*row.choices, None) or row.kind != "choice"


def test_no_two_rows_have_one_name() -> None:
    names = [name for row in ROWS for name in (row.name, *row.aliases)]

    assert len(names) == len(set(names))


@given(st.sampled_from([row for row in ROWS if row.kind != "path"]), st.text(max_size=40))
def test_any_text_is_a_value_or_a_config_error(row: Variable, text: str) -> None:
    parsed, error = None, None
    try:
        parsed = parse(row, text, "here")
    except ConfigError as caught:
        error = caught

    if error is not None:
        assert (error.where, error.what.isprintable()) == ("here", True)
    elif row.kind in {"int", "float"}:
        assert row.low <= parsed <= row.high


# --- the settings made out of them


def test_without_any_variable_everything_is_on_this_machine(world: World) -> None:
    settings = world.load(with_sources=False)

    assert (settings.chroma.mode, settings.embedder.kind) == ("embedded", "builtin")
    assert settings.embedder.model == "all-MiniLM-L6-v2"
    assert settings.chroma.path == world.home / ".local/share/retrieval/chroma"
    assert (settings.embedder.url, settings.embedder.api_key, settings.chroma.token) == ("", "", "")
    assert settings.warnings == ()
    assert settings.origins == {}


def test_a_chroma_server_is_reached_where_the_variables_say(world: World) -> None:
    world.env |= {
        "RETRIEVAL_CHROMA_MODE": "server",
        "RETRIEVAL_CHROMA_HOST": "chroma.example",
        "RETRIEVAL_CHROMA_PORT": "8443",
        "RETRIEVAL_CHROMA_SSL": "true",
        "RETRIEVAL_CHROMA_TOKEN": "t0ken",
        "RETRIEVAL_CHROMA_TENANT": "acme",
        "RETRIEVAL_CHROMA_DATABASE": "skills",
        "RETRIEVAL_CHROMA_PATH": "store",
        "RETRIEVAL_NAMESPACE": "ada",
    }
    chroma = world.load(with_sources=False).chroma

    assert (chroma.mode, chroma.host, chroma.port, chroma.ssl) == ("server", "chroma.example", 8443, True)
    assert (chroma.token, chroma.tenant, chroma.database, chroma.namespace) == ("t0ken", "acme", "skills", "ada")
    assert chroma.path == world.cwd / "store"
    assert "t0ken" not in repr(chroma)


def test_the_cloud_has_its_own_defaults(world: World) -> None:
    world.env |= {"RETRIEVAL_CHROMA_MODE": "cloud", "RETRIEVAL_CHROMA_TOKEN": "ck-1"}
    chroma = world.load(with_sources=False).chroma

    assert (chroma.host, chroma.port, chroma.ssl) == ("api.trychroma.com", 443, True)


def test_the_cloud_needs_a_token(world: World) -> None:
    world.env["RETRIEVAL_CHROMA_MODE"] = "cloud"

    assert world.fails(with_sources=False) == (
        "RETRIEVAL_CHROMA_MODE is cloud, which needs RETRIEVAL_CHROMA_TOKEN",
        "environment variable RETRIEVAL_CHROMA_MODE",
        "set RETRIEVAL_CHROMA_TOKEN in the environment or in .env",
    )


@pytest.mark.parametrize("prefix", ["RETRIEVAL_", ""])
def test_an_endpoint_is_set_by_either_name(world: World, prefix: str) -> None:
    world.env |= {
        "RETRIEVAL_EMBEDDER": "endpoint",
        f"{prefix}EMBEDDING_URL": "http://127.0.0.1:8080/v1/embeddings",
        f"{prefix}EMBEDDING_MODEL": "bge-m3",
        f"{prefix}EMBEDDING_API_KEY": "sk-1",
        "RETRIEVAL_EMBEDDING_BATCH": "16",
        "RETRIEVAL_EMBEDDING_TIMEOUT": "5",
        "RETRIEVAL_EMBEDDING_RETRIES": "0",
        "RETRIEVAL_EMBEDDING_QUERY_PREFIX": "query: ",
        "RETRIEVAL_EMBEDDING_PASSAGE_PREFIX": " ",
    }
    settings = world.load(with_sources=False)
    embedder = settings.embedder

    assert (embedder.kind, embedder.url, embedder.model) == (
        "endpoint",
        "http://127.0.0.1:8080/v1/embeddings",
        "bge-m3",
    )
    assert (embedder.api_key, embedder.batch, embedder.timeout, embedder.retries) == ("sk-1", 16, 5.0, 0)
    assert (embedder.query_prefix, embedder.passage_prefix) == ("query: ", " ")
    assert "sk-1" not in repr(settings)
    assert settings.origins["RETRIEVAL_EMBEDDING_URL"] == f"environment variable {prefix}EMBEDDING_URL"


def test_our_own_name_wins_over_the_common_one(world: World) -> None:
    world.env |= {"RETRIEVAL_EMBEDDER": "fastembed", "EMBEDDING_MODEL": "b", "RETRIEVAL_EMBEDDING_MODEL": "a"}

    assert world.load(with_sources=False).embedder.model == "a"


def test_fastembed_has_a_model_of_its_own_and_its_cache_where_told(world: World) -> None:
    world.env |= {"RETRIEVAL_EMBEDDER": "fastembed", "RETRIEVAL_FASTEMBED_CACHE": "~/models"}
    embedder = world.load(with_sources=False).embedder

    assert embedder.model == "sentence-transformers/all-MiniLM-L6-v2"
    assert embedder.cache == world.home / "models"


@pytest.mark.parametrize(
    ("env", "needed"),
    [({}, "RETRIEVAL_EMBEDDING_URL"), ({"EMBEDDING_URL": "http://localhost"}, "RETRIEVAL_EMBEDDING_MODEL")],
)
def test_an_endpoint_needs_address_and_model(world: World, env: dict[str, str], needed: str) -> None:
    world.env |= {"RETRIEVAL_EMBEDDER": "endpoint", **env}

    assert world.fails(with_sources=False)[0] == f"RETRIEVAL_EMBEDDER is endpoint, which needs {needed}"


def test_an_address_alone_sends_nothing_anywhere_and_says_so(world: World) -> None:
    world.env |= {"EMBEDDING_URL": "http://elsewhere.example/v1", "EMBEDDING_API_KEY": "sk-1"}
    settings = world.load(with_sources=False)

    assert (settings.embedder.kind, settings.embedder.url, settings.embedder.api_key) == ("builtin", "", "")
    assert [world.told(warning) for warning in settings.warnings] == [
        (
            "EMBEDDING_URL, EMBEDDING_API_KEY have no effect, because RETRIEVAL_EMBEDDER is builtin",
            "environment variable EMBEDDING_URL",
            "set RETRIEVAL_EMBEDDER=endpoint to use what is set, or RETRIEVAL_EMBEDDER=builtin to keep it unused",
        )
    ]


def test_a_host_without_a_mode_is_said_to_have_no_effect(world: World) -> None:
    world.env["RETRIEVAL_CHROMA_HOST"] = "chroma.example"

    assert [warning.what for warning in world.load(with_sources=False).warnings] == [
        "RETRIEVAL_CHROMA_HOST has no effect, because RETRIEVAL_CHROMA_MODE is embedded"
    ]


@pytest.mark.parametrize("switch", ["RETRIEVAL_EMBEDDER=builtin", "RETRIEVAL_CHROMA_MODE=embedded"])
def test_a_mode_that_is_chosen_silences_the_warning(world: World, switch: str) -> None:
    name, _, chosen = switch.partition("=")
    world.env |= {name: chosen, "EMBEDDING_URL": "http://x", "RETRIEVAL_CHROMA_HOST": "h"}

    assert len(world.load(with_sources=False).warnings) == 1


def test_an_unknown_variable_is_a_warning_with_the_nearest_name(world: World) -> None:
    world.env |= {"RETRIEVAL_LOCK_TIMOUT": "5", "RETRIEVAL_QQQQQ": "1", "OTHER_THING": "1"}

    assert [world.told(warning) for warning in world.load(with_sources=False).warnings] == [
        (
            "the variable RETRIEVAL_LOCK_TIMOUT is unknown and has no effect",
            "environment variable RETRIEVAL_LOCK_TIMOUT",
            'did you mean "RETRIEVAL_LOCK_TIMEOUT"?',
        ),
        (
            "the variable RETRIEVAL_QQQQQ is unknown and has no effect",
            "environment variable RETRIEVAL_QQQQQ",
            "remove it, or see docs/configuration.md for the known ones",
        ),
    ]


def test_limits_and_the_lock_come_from_variables(world: World) -> None:
    world.env |= {"RETRIEVAL_LOCK_TIMEOUT": "0", "RETRIEVAL_MAX_SKILL_BYTES": "2048"}
    settings = world.load(with_sources=False)

    assert (settings.lock_timeout, settings.limits.skill_bytes) == (0, 2048)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ""), ("iwe", "iwe"), ("~/bin/iwe", "home/bin/iwe"), ("bin/iwe", "here/bin/iwe"), ("/opt/iwe", "/opt/iwe")],
)
def test_a_program_is_a_name_on_the_path_or_a_path(world: World, text: str, expected: str) -> None:
    world.env["RETRIEVAL_IWE_COMMAND"] = text

    assert world.short(world.load(with_sources=False).iwe_command) == expected


def test_a_bad_value_in_a_file_is_told_with_its_line(world: World) -> None:
    world.write("here/.env", "# comment\nRETRIEVAL_CHROMA_PORT=http\n")

    assert world.fails(with_sources=False)[:2] == ('RETRIEVAL_CHROMA_PORT is "http"', "here/.env:2")


def test_an_empty_value_counts_as_unset(world: World) -> None:
    world.env |= {"RETRIEVAL_CHROMA_PORT": "", "RETRIEVAL_HOME": " ", "RETRIEVAL_EMBEDDER": ""}
    settings = world.load(with_sources=False)

    assert settings.chroma.port == 8000
    assert settings.data_dir == world.home / ".local/share/retrieval"
