"""How a path as people write it becomes an absolute one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.config.paths import LONGEST_PATH, Expander, absolute, is_foreign
from pipeline.errors import ConfigError

POSIX = {
    "BASE": "~/Hermes",
    "DEEP": "$BASE/library",
    "ROOT": "/",
    "PLAIN": "/srv/skills",
    "EMPTY": "",
    "LOOP": "a$LOOP",
    "PING": "$PONG",
    "PONG": "$PING",
    "PRICE": "/srv/5$$",
}
WINDOWS = {"LOCALAPPDATA": "D:\\Local", "BASE": "~\\Hermes", "PROGRAMFILES(X86)": "C:\\P86"}


def posix(text: str, environ: dict[str, str] = POSIX) -> str:
    expanded = Expander(environ, "/home/ada", "posix", "file:7").expand(text)
    return absolute(expanded, "/etc/retrieval", "posix", "file:7")


def windows(text: str) -> str:
    expanded = Expander(WINDOWS, "C:\\Users\\Ada", "nt", "file:7").expand(text)
    return absolute(expanded, "C:\\cfg", "nt", "file:7")


def refused(text: str, expand=posix) -> str:
    with pytest.raises(ConfigError) as caught:
        expand(text)
    assert caught.value.where == "file:7"
    assert caught.value.next_step
    return caught.value.what


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/srv/skills", "/srv/skills"),
        ("skills", "/etc/retrieval/skills"),
        ("./skills/../library/", "/etc/retrieval/library"),
        ("~", "/home/ada"),
        ("~/skills", "/home/ada/skills"),
        ("$PLAIN", "/srv/skills"),
        ("${PLAIN}/web", "/srv/skills/web"),
        ("$BASE/skills", "/home/ada/Hermes/skills"),
        ("${BASE}", "/home/ada/Hermes"),
        ("$DEEP", "/home/ada/Hermes/library"),
        ("~/${NAME:-skills}", "/home/ada/skills"),
        ("${NAME:-~/skills}", "/home/ada/skills"),
        ("${NAME:-$BASE/x}", "/home/ada/Hermes/x"),
        ("${NAME:-${OTHER:-${PLAIN}}/y}", "/srv/skills/y"),
        ("${EMPTY:-/fallback}", "/fallback"),
        ("${PLAIN:-/fallback}", "/srv/skills"),
        ("/srv${NAME:-}/x", "/srv/x"),
        ("$ROOT/skills", "/skills"),
        ("/srv/$$HOME", "/srv/$HOME"),
        ("$PRICE", "/srv/5$"),
        ("/srv/a$", "/srv/a$"),
        ("/srv/a$/b", "/srv/a$/b"),
        ("/srv/100%", "/srv/100%"),
        ("/srv/%PLAIN%", "/srv/%PLAIN%"),
        ("/srv/a~b/~", "/srv/a~b/~"),
        ("back\\slash", "/etc/retrieval/back\\slash"),
        ("/srv/ünïcode 技能", "/srv/ünïcode 技能"),
        ("//srv//skills", "/srv/skills"),
    ],
)
def test_on_posix_a_path_expands(text: str, expected: str) -> None:
    assert posix(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("D:\\skills", "D:\\skills"),
        ("D:/skills/web", "D:\\skills\\web"),
        ("skills/web", "C:\\cfg\\skills\\web"),
        ("~\\skills", "C:\\Users\\Ada\\skills"),
        ("~/skills", "C:\\Users\\Ada\\skills"),
        ("%LOCALAPPDATA%\\hermes", "D:\\Local\\hermes"),
        ("%LocalAppData%/hermes", "D:\\Local\\hermes"),
        ("$localappdata/hermes", "D:\\Local\\hermes"),
        ("${BASE}/x", "C:\\Users\\Ada\\Hermes\\x"),
        ("%PROGRAMFILES(X86)%\\x", "C:\\P86\\x"),
        ("${PROGRAMFILES(X86)}\\x", "C:\\P86\\x"),
        ("C:\\100%%\\x", "C:\\100%\\x"),
        ("C:\\100%\\x", "C:\\100%\\x"),
        ("\\\\host\\share\\skills", "\\\\host\\share\\skills"),
        ("C:\\a\\..\\b", "C:\\b"),
    ],
)
def test_on_windows_a_path_expands(text: str, expected: str) -> None:
    assert windows(text) == expected


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("$NOPE/x", "the path uses NOPE, which is not set"),
        ("$EMPTY/x", "the path uses EMPTY, which is empty"),
        ("${NOPE}", "the path uses NOPE, which is not set"),
        ("${NOPE:-$ALSO}", "the path uses ALSO, which is not set"),
        ("$LOOP", "the variable LOOP leads back to itself"),
        ("$PING", "the variable PING leads back to itself"),
        ("${PLAIN", 'the path has an open ${: "${PLAIN"'),
        ("${}", 'the path has a variable that cannot be read: "${}"'),
        ("${PLAIN-x}", 'the path has a variable that cannot be read: "${PLAIN-x}"'),
        ("${PLAIN:=x}", 'the path has a variable that cannot be read: "${PLAIN:=x}"'),
        ("/srv/$BASE", "the variable BASE begins with ~, which is a home folder only at the beginning of a path"),
        ("~nobody-of-this-name/x", 'the path names the home of "nobody-of-this-name", who is unknown here'),
        ("", "the path is empty"),
        ("   ", "the path is empty"),
        ("/srv/a\0b", 'the path holds a character that no path should: "/srv/a�b"'),
        ("/srv/a\nb", 'the path holds a character that no path should: "/srv/a�b"'),
    ],
)
def test_what_cannot_be_expanded_is_one_clear_error(text: str, what: str) -> None:
    assert refused(text) == what


def test_an_unset_variable_on_windows_is_an_error_in_either_spelling() -> None:
    assert refused("%NOPE%\\x", windows) == "the path uses NOPE, which is not set"
    assert refused("$nope\\x", windows) == "the path uses NOPE, which is not set"


def test_a_users_home_is_unknown_on_windows() -> None:
    assert refused("~ada\\x", windows) == 'the path names the home of "ada\\x", who is unknown here'


def test_the_home_of_another_user_is_looked_up_on_posix() -> None:
    pwd = pytest.importorskip("pwd", reason="this system has no user database")
    entry = pwd.getpwall()[0]

    assert posix(f"~{entry.pw_name}/skills") == absolute(f"{entry.pw_dir}/skills", "/", "posix", "")


def test_the_error_for_a_variable_inside_a_variable_names_the_way_to_it() -> None:
    with pytest.raises(ConfigError) as caught:
        posix("$OUTER", {"OUTER": "$INNER/x"})

    assert caught.value.what == "the path uses INNER, which is not set (through OUTER)"


def test_a_misspelt_variable_is_answered_with_the_one_that_is_set() -> None:
    with pytest.raises(ConfigError) as caught:
        posix("$SKILLS_FODLER", {"SKILLS_FOLDER": "/srv"})

    assert caught.value.next_step.startswith('did you mean "SKILLS_FOLDER"?')


def test_values_that_multiply_each_other_end_soon() -> None:
    environ = {f"V{n}": f"$V{n + 1}$V{n + 1}" for n in range(30)} | {"V30": "x"}

    with pytest.raises(ConfigError) as caught:
        posix("$V0", environ)

    assert caught.value.what == "the path looks up too many variables"


def test_values_that_grow_end_at_the_longest_path() -> None:
    with pytest.raises(ConfigError) as caught:
        posix("$A" * 100, {"A": "x" * 1000})

    assert caught.value.what == "the path is too long once its variables are filled in"


def test_a_default_may_not_be_nested_without_end() -> None:
    assert refused("${A:-" * 5000 + "}" * 5000) == "the path's variables are nested too deeply"


def test_a_windows_path_is_foreign_everywhere_else() -> None:
    assert is_foreign("C:\\skills", "posix")
    assert is_foreign("d:/skills", "posix")
    assert not is_foreign("C:\\skills", "nt")
    assert not is_foreign("/c/skills", "posix")


NAMES = st.sampled_from(["A", "B", "C", "HOME", "é", ""])
PIECES = st.one_of(
    st.sampled_from(["~", "/", "\\", "$", "${", "}", ":-", "%", "..", ".", "$$", "%%", " ", "\0", "~root", "C:"]),
    NAMES.map(lambda name: f"${name}"),
    NAMES.map(lambda name: f"${{{name}}}"),
    NAMES.map(lambda name: f"%{name}%"),
    st.text(max_size=6),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@given(TEXTS, st.dictionaries(NAMES, TEXTS, max_size=4), st.sampled_from(["posix", "nt"]))
@example("~\ud800", {}, "posix")
@example("~a\0/x", {}, "posix")
def test_expansion_gives_an_absolute_path_or_one_config_error(text: str, environ: dict[str, str], os_name: str) -> None:
    home, base = ("C:\\Users\\Ada", "C:\\cfg") if os_name == "nt" else ("/home/ada", "/etc")
    result, error = None, None
    try:
        result = absolute(Expander(environ, home, os_name, "file:7").expand(text), base, os_name, "file:7")
    except ConfigError as caught:
        error = caught

    if error is not None:
        assert (error.where, bool(error.what), bool(error.next_step)) == ("file:7", True, True)
        return
    assert len(result) <= LONGEST_PATH
    assert "\0" not in result
    if os_name == "posix":
        assert result.startswith("/")
        assert ".." not in result.split("/")
        assert absolute(result, "/elsewhere", os_name, "") == result


ORDINARY = st.text(st.characters(blacklist_categories=["Cc", "Cs"], blacklist_characters="$~/\\%"), min_size=1)


@given(ORDINARY.filter(lambda name: name.strip() and name.strip(".")))
def test_a_path_without_special_characters_stays_as_it_is(name: str) -> None:
    assert posix(f"/srv/{name}/skills") == f"/srv/{name}/skills"
