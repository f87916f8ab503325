"""Which selector settings mean, what `doctor` says of it, and what a scout would be started with. No OMP is needed."""

from __future__ import annotations

import json
import os
import tempfile

import pytest

from serve.errors import OperatorError
from serve.selection import checks, omp_setup, registry
from serve.selection.limits import ChoiceError
from serve.settings import ScoutSettings

MODELS = "providers:\n  mine:\n    baseUrl: http://127.0.0.1:9/v1\n    apiKey: MY_KEY\n    models: [{id: scout}]\n"


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "bin" / "omp"
    path.parent.mkdir()
    path.write_text('#!/bin/sh\nif [ "$1" = --version ]; then echo omp/18.2.3; else exit 1; fi\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def models(tmp_path):
    path = tmp_path / "models.yml"
    path.write_text(MODELS, encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture(autouse=True)
def _no_omp_on_path(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def test_auto_is_omp_where_program_and_model_are(program, models):
    for given in ({"models_file": models, "model": "mine/scout"}, {"url": "http://127.0.0.1:9/v1", "model": "m"}):
        selector, notes = registry.open_selector(ScoutSettings(omp_command=program, standby=False, **given), "hermes")
        selector.close()

        assert (selector.name, notes) == ("omp", ())


@pytest.mark.requirement("R224")
@pytest.mark.parametrize(
    ("given", "note"),
    [
        ({"url": "http://h/v1", "model": "m"}, "there is no program `omp`"),
        ({"omp_command": "PROGRAM"}, "no model is set up for the scout"),
        ({"omp_command": "PROGRAM", "url": "http://h/v1"}, "the scout's model is not named"),
        ({"omp_command": "PROGRAM", "url": "ftp://h/v1", "model": "m"}, "no HTTP address"),
        ({"omp_command": "PROGRAM", "model": "anthropic/x"}, "no model is set up for the scout"),
    ],
)
def test_auto_is_rank_elsewhere_and_a_note_says_why(given, note, program):
    given = {key: program if value == "PROGRAM" else value for key, value in given.items()}

    selector, notes = registry.open_selector(ScoutSettings(**given), "omp")

    assert selector.name == "rank"
    assert note in notes[0]


@pytest.mark.parametrize("name", ["omp", "endpoint", "rank"])
def test_a_selector_that_is_asked_for_is_the_one(name):
    """Also where it cannot work: its choices say why."""
    selector, notes = registry.open_selector(ScoutSettings(selector=name, standby=False), "omp")
    selector.close()

    assert (selector.name, notes) == (name, ())


def test_a_selector_that_does_not_exist_is_refused():
    with pytest.raises(OperatorError) as caught:
        registry.open_selector(ScoutSettings(selector="oracle"), "omp")

    assert "auto, omp, endpoint, rank" in caught.value.next_step


def said(settings):
    return {f"{check.what}: {check.detail}": check for check in checks.explain(settings)}


def test_doctor_sees_a_scout_that_is_set_up(program, models, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-value")
    found = said(ScoutSettings(omp_command=program, models_file=models, model="mine/scout"))

    assert all(check.ok for check in found.values())
    assert f"omp: omp/18.2.3 ({program})" in found
    assert f"model: mine/scout by {models}, key from MY_KEY" in found
    assert "secret-value" not in str(found)


def failing(settings):
    return [(check.what, check.detail, bool(check.next_step)) for check in checks.explain(settings) if not check.ok]


def test_doctor_names_what_a_scout_lacks(program, models, tmp_path):
    models.chmod(0o644)
    given = {"selector": "omp", "omp_command": program}

    assert failing(ScoutSettings(**{**given, "omp_command": "nope", "url": "http://h", "model": "m"})) == [
        ("omp", "there is no program `nope`", True)
    ]
    assert failing(ScoutSettings(**given))[0][0] == "model"
    assert failing(ScoutSettings(**given, models_file=tmp_path / "no.yml", model="a/b"))[0][1].endswith("no.yml)")
    assert failing(ScoutSettings(**given, models_file=models, model="other/scout")) == [
        ("models.yml", f"{models} has no provider `other`", True),
        ("models.yml", f"{models} can be read by others", True),
    ]
    assert failing(ScoutSettings(**given, url="http://h", model="m", pass_variables=("UNSET_ONE", "NODE_OPTIONS"))) == [
        ("variables", "not set: UNSET_ONE, NODE_OPTIONS", True),
        ("variables", "never passed, because the scout would be led out of its folders: NODE_OPTIONS", True),
    ]


def test_doctor_names_what_an_endpoint_lacks():
    assert failing(ScoutSettings(selector="endpoint"))[0][1] == "the endpoint needs a URL and the name of a model"
    assert "no HTTP address" in failing(ScoutSettings(selector="endpoint", url="h", model="m"))[0][1]
    assert failing(ScoutSettings(selector="endpoint", url="http://h", model="m", api_key="k")) == []
    assert failing(ScoutSettings(selector="oracle"))[0][1] == "there is no selector `oracle`"


def test_a_program_that_breaks_is_a_finding(tmp_path):
    path = tmp_path / "omp"
    path.write_text("#!/bin/sh\nexit 4\n", encoding="utf-8")
    path.chmod(0o755)

    [found] = failing(ScoutSettings(selector="omp", omp_command=str(path), url="http://h", model="m"))

    assert found[0] == "omp"
    assert "does not tell its version" in found[1]


@pytest.mark.long
def test_a_rehearsal_starts_the_scout_and_asks_no_model(omp, private, serve_model):
    server = serve_model(lambda *_: "never")
    good = ScoutSettings(omp_command=str(omp), url=server.url, model="m")

    assert checks.rehearse(good).ok
    assert server.requests == []
    assert list(private.iterdir()) == []


def test_a_rehearsal_says_what_is_wrong(program, private):
    found = checks.rehearse(ScoutSettings(omp_command=program, url="http://127.0.0.1:9", model="m"))

    assert (found.ok, found.detail) == (False, "OMP ended with status 1")
    assert list(private.iterdir()) == []


@pytest.mark.parametrize("provider", ["anthropic", "openai", "ollama", "openrouter"])
def test_a_provider_that_omp_asks_other_servers_for_is_refused(provider, models):
    with pytest.raises(ChoiceError, match="give it another name"):
        omp_setup.access(ScoutSettings(models_file=models, model=f"{provider}/x"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (MODELS, {"MY_KEY"}),
        (MODELS.replace("MY_KEY", '"MY_KEY"'), {"MY_KEY"}),
        ("providers: {mine: {apiKey: MY_KEY, models: []}}", {"MY_KEY"}),
        ('{"providers": {"mine": {"apiKey": "MY_KEY"}}}', {"MY_KEY"}),
        (MODELS.replace("mine", "other"), set()),
        (MODELS.replace("MY_KEY", "sk-literal"), set()),
        ("providers:\n  mine:\n    auth: none\n  other:\n    apiKey: MY_KEY\n", set()),
        (MODELS.replace("MY_KEY", "LD_PRELOAD"), set()),
        ("providers: {other: {apiKey: MY_KEY}, mine: {auth: none}}", set()),
        ("providers: {mine: {auth: none}, other: {apiKey: MY_KEY}}", set()),
    ],
)
def test_the_key_that_a_models_file_names_is_passed(text, names, models, monkeypatch):
    for name in ("MY_KEY", "OTHER", "LD_PRELOAD", "sk"):
        monkeypatch.setenv(name, "v")
    models.write_text(text, encoding="utf-8")

    assert set(omp_setup.access(ScoutSettings(models_file=models, model="mine/scout")).keys) == names


def test_a_models_file_without_bounds_is_refused(models):
    models.write_text("#" * (omp_setup.LARGEST_MODELS_FILE + 1), encoding="utf-8")
    with pytest.raises(ChoiceError, match="larger than"):
        omp_setup.access(ScoutSettings(models_file=models, model="mine/scout"))
    models.write_bytes(b"\xff\xfe")
    with pytest.raises(ChoiceError, match="no UTF-8"):
        omp_setup.access(ScoutSettings(models_file=models, model="mine/scout"))


def test_the_key_stands_in_no_file(private):
    access = omp_setup.access(ScoutSettings(url="http://h/v1", model="m", api_key="the-key"))
    folders = omp_setup.make_folders(access)
    texts = [path.read_text(encoding="utf-8") for path in private.rglob("*") if path.is_file()]
    omp_setup.remove_folders(folders)

    assert len(texts) == 4
    assert "the-key" not in "".join(texts)
    assert access.keys == {"RETRIEVAL_SCOUT_MODEL_KEY": "the-key"}


@pytest.mark.requirement("R029", "R128")
def test_the_scouts_settings_switch_off_what_no_flag_does(private):
    folders = omp_setup.make_folders(omp_setup.Access("", "", {}))
    texts = {
        name: (private / folders.root / name).read_text(encoding="utf-8")
        for name in ("settings.yml", "home/.omp/agent/config.yml")
    }
    omp_setup.remove_folders(folders)
    settings = json.loads(texts["settings.yml"])

    assert texts["home/.omp/agent/config.yml"] == texts["settings.yml"]
    off = ["startup.checkUpdate", "mcp.enableProjectConfig", "skills.enabled", "advisor.enabled", "autolearn.enabled",
           "compaction.enabled", "magicKeywords.enabled", "retry.enabled", "tools.intentTracing"]  # fmt: skip
    assert [name for name in off if settings[name.partition(".")[0]][name.partition(".")[2]] is not False] == []
    assert settings["memory"]["backend"] == "off"
    assert {"native", "mcp-json", "agents-md", "claude-md", "anthropic", "openai", "ollama"} <= {
        *settings["disabledProviders"]
    }


def test_folders_of_the_living_are_kept_and_others_of_their_name_untouched(private):
    access = omp_setup.Access("", "", {})
    living = omp_setup.make_folders(access)
    (private / "retrieval-scout-by-hand").mkdir()
    (private / "retrieval-scout-file").write_text("x", encoding="utf-8")
    (private / "retrieval-scout-link").symlink_to(living.root)
    dead = omp_setup.make_folders(access)
    os.close(dead.lock)

    omp_setup.remove_left_overs()

    assert os.path.isdir(living.root)
    assert not os.path.exists(dead.root)
    assert {path.name for path in private.iterdir()} == {
        *(os.path.basename(living.root), "retrieval-scout-by-hand", "retrieval-scout-file", "retrieval-scout-link")
    }
    omp_setup.remove_folders(living)
    assert tempfile.gettempdir() == str(private)
