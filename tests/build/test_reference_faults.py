"""What brought an earlier program of this kind down, or let it go wrong without a word, done to a whole build.

Such faults that other tests show fully are not repeated here: hostile text on a terminal and in JSON (tests/cli/test_terminal.py), exit
codes and errors without tracebacks (tests/cli/test_exit_codes.py), what a build with nothing to do does, and what it notices
(tests/build/test_truth_table.py), pruned folders (tests/sources/test_walk.py), headings that cost the square of their length
(tests/reader/test_hostile.py), `.env` files (tests/config/test_env_files.py), the version (tests/cli/test_help.py), an installation
without a checkout (tests/packaging/test_wheel.py), two data directories on one server (tests/chroma/test_server.py).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipeline.engine.memo import STEPS
from pipeline.model import Categorized, Problem, Selected
from serve.contract import Descriptor, Record
from serve.embedder import EmbedderConfig
from serve.query import Query
from serve.search import Searcher
from serve.snapshot import Live
from tests.build.compare import assert_same_index, elsewhere, store_rows
from tests.chroma.support import Server
from tests.embedder.loopback import EmbeddingServer
from tests.support import ROOT, lacking
from tests.world import COMMAND, SUBJECTS, World

SECRET = "zq7-the-text-of-a-private-file-81b2"
LIVE = {f"main:{name}" for name in SUBJECTS}


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    made = EmbeddingServer()
    yield made
    made.close()


@pytest.fixture
def more(server: EmbeddingServer) -> dict[str, str]:
    """Variables that embed through a loopback server, which costs no model."""
    return {
        "RETRIEVAL_EMBEDDER": "endpoint",
        "RETRIEVAL_EMBEDDING_URL": server.url,
        "RETRIEVAL_EMBEDDING_MODEL": "loopback",
        "RETRIEVAL_EMBEDDING_RETRIES": "0",
    }


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The four skills of the little library, not built yet."""
    made = World(tmp_path)
    made.library()
    return made


def records(world: World) -> dict[str, Record]:
    """What answers show, by ID."""
    found = msgspec.json.Decoder(Record).decode_lines(world.snapshot()["records.jsonl"])
    return {record.id: record for record in found}


def rows(world: World, step: str, kind: type[Any], source: str = "main") -> list[Any]:
    return msgspec.json.Decoder(kind).decode_lines((world.data / "build" / step / f"{source}.jsonl").read_bytes())


def put(world: World, folder: str, text: str) -> Path:
    """A SKILL.md as it is given."""
    path = world.lib("main") / folder / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def searcher(world: World, **config: Any) -> Searcher:
    return Searcher(world.data, EmbedderConfig(**config))


# ------------------------------------------------------------------------------------------- A1: paths of the configuration


def test_a_variable_that_begins_with_a_tilde_leads_to_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    world = World(tmp_path / "home" / "Hermes")
    world.library()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (world.root / ".env").write_text("PROJECTS=~/Hermes\nINTAKE=$PROJECTS/lib-main\n", encoding="utf-8")
    world.config.write_text('[[sources]]\nname = "main"\nkind = "skills"\npath = "${INTAKE}"\n', encoding="utf-8")

    report = world.build(**more)

    assert report.problems == []
    assert records(world).keys() == LIVE
    assert not (world.root / "~").exists()


# ------------------------------------------------------------------------------------------------------ A2: one bad skill


def asks_for_an_unknown_category(world: World) -> None:
    put(
        world,
        "bad",
        "---\nname: bad\ndescription: Query an SQL database.\nretrieval_categories: [bogus]\n---\n\n# Bad\n",
    )


def links_to_itself(world: World) -> None:
    (world.lib("main") / "bad").mkdir()
    (world.lib("main") / "bad" / "SKILL.md").symlink_to("SKILL.md")


def leads_back_to_the_library(world: World) -> None:
    (world.lib("main") / "bad").symlink_to(world.lib("main"), target_is_directory=True)


def is_nested_3000_deep(world: World) -> None:
    put(
        world,
        "bad",
        f"---\nname: bad\ndescription: Query an SQL database.\nx: {'[' * 3000}{']' * 3000}\n---\n\n# Bad\n",
    )


def is_a_folder(world: World) -> None:
    (world.lib("main") / "bad" / "SKILL.md").mkdir(parents=True)


def is_a_pipe(world: World) -> None:
    (world.lib("main") / "bad").mkdir()
    os.mkfifo(world.lib("main") / "bad" / "SKILL.md")


def is_empty(world: World) -> None:
    put(world, "bad", "")


def is_a_picture(world: World) -> None:
    path = put(world, "bad", "")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40)


@pytest.mark.parametrize(
    ("harm", "status"),
    [
        (asks_for_an_unknown_category, "indexed"),
        (links_to_itself, "problem"),
        (leads_back_to_the_library, "problem"),
        (is_nested_3000_deep, "indexed"),
        (is_a_folder, "problem"),
        (is_a_pipe, "problem"),
        (is_empty, "review"),
        (is_a_picture, "review"),
    ],
)
def test_one_bad_skill_costs_only_itself_and_is_accounted_for(
    world: World, more: dict[str, str], harm: Callable[[World], None], status: str
) -> None:
    harm(world)

    world.build(**more)

    counts = Live(world.data).current().manifest.counts["main"]
    assert records(world).keys() >= LIVE
    assert counts["found"] == sum(counts.values()) - counts["found"] == 5
    assert counts[status] == (5 if status == "indexed" else 1)
    for problem in rows(world, "problems", Problem):
        assert all((problem.what, problem.where, problem.next, problem.kind))


def test_an_unknown_category_is_said_and_the_keywords_decide(world: World, more: dict[str, str]) -> None:
    asks_for_an_unknown_category(world)
    world.build(**more)

    (row,) = (row for row in rows(world, "categorize", Categorized) if row.id == "main:bad")

    assert "databases" in row.categories
    assert any("bogus" in said for said in row.diagnostics)


# Runs a command without root's right to read what it has no permission for.
WITHOUT_PRIVILEGE = """
import ctypes, os, sys
if os.geteuid() == 0:
    for right in (1, 2):  # to override permissions, and to override those of reading
        if ctypes.CDLL(None, use_errno=True).prctl(24, right, 0, 0, 0):
            sys.exit(77)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX systems")
def test_a_file_that_cannot_be_read_is_a_problem_and_the_next_build_takes_it_in(
    world: World, more: dict[str, str]
) -> None:
    path = world.skill("locked")
    bundled = world.skill("half-locked", files={"notes.md": "notes\n"}).with_name("notes.md")

    def build() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_PRIVILEGE, *COMMAND[1:], "build"],
            cwd=world.root,
            env={**os.environ, "PYTHONPATH": str(ROOT), **world.environment(**more)},
            capture_output=True,
            check=False,
            encoding="utf-8",
        )

    path.chmod(0)
    bundled.chmod(0)
    done = build()
    if done.returncode == 77:
        lacking("the right to give up rights", "run the tests as an ordinary user")

    assert (done.returncode, done.stderr) == (3, "")
    assert {problem.where for problem in rows(world, "problems", Problem)} == {str(path), str(bundled)}
    assert {problem.kind for problem in rows(world, "problems", Problem)} == {"unreadable"}
    assert records(world).keys() == LIVE

    path.chmod(0o644)
    bundled.chmod(0o644)
    assert build().returncode == 0
    assert records(world).keys() == LIVE | {"main:locked", "main:half-locked"}


def test_a_library_that_changes_while_it_is_read_stops_no_build(world: World, more: dict[str, str]) -> None:
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            path = world.skill(f"fleeting-{number % 7}", files={"notes.md": f"{number}\n"})
            path.write_text(path.read_text(encoding="utf-8") + f"{number}\n", encoding="utf-8")
            for gone in (path.with_name("notes.md"), path):
                gone.unlink()
            path.parent.rmdir()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(8):
            world.build(**more)
            assert records(world).keys() >= LIVE
    finally:
        stop.set()
        thread.join()
    world.build(**more)
    clean = elsewhere(world)
    clean.build(**more)

    assert_same_index(world, clean, **more)
    assert records(world).keys() == LIVE


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("category-overrides.toml", '[skills]\n"main:sql-tuning" = ["bogus"]\n', 2),
        ("category-overrides.toml", '[skills]\n"main:sql-tuning" = \n', 2),
        ("taxonomy.toml", 'version = 1\n\n[[categories]]\nid = "Not An Id"\nlabel = "x"\nkeywords = ["x"]\n', 4),
        ("sources.toml", '[[sources]]\nname = "main"\nkind = "skills"\npaht = "lib-main"\n', 4),
    ],
)
def test_a_mistake_in_a_file_of_the_configuration_is_one_error_and_the_index_goes_on_answering(
    world: World, name: str, text: str, line: int
) -> None:
    world.build()
    before = world.snapshot()
    path = world.root / name
    path.write_text(text, encoding="utf-8")

    told = world.json("build", code=2)
    answer = world.json("search", "tune a slow query")

    assert told["where"] == f"{path}:{line}"
    assert told["error"]
    assert told["next"]
    assert world.snapshot() == before
    assert answer["results"][0]["id"] == "main:sql-tuning"
    assert all(lane["used"] for lane in answer["lanes"].values())


# ------------------------------------------------------------------------------------------------------- A3: the alias bomb


def test_a_bomb_of_aliases_leaves_little_behind_and_its_neighbours_alone(world: World, more: dict[str, str]) -> None:
    lists = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 9)]
    bomb = "\n".join(["a0: &a0 [x, x, x]", *lists, "tags: [*a8]", "retrieval_categories: *a8", "metadata: *a8"])
    put(world, "bomb", f"---\nname: bomb\ndescription: Query an SQL database.\n{bomb}\n---\n\n# Bomb\n")

    world.build(**more)

    assert records(world).keys() == LIVE | {"main:bomb"}
    assert records(world)["main:bomb"].description == "Query an SQL database."
    for path in (world.data / "build").rglob("*.jsonl"):
        assert path.stat().st_size < 50_000, path


# -------------------------------------------------------------------------------------------------- A4: links that lead out


@pytest.mark.parametrize("absolute", [True, False])
def test_what_lies_outside_a_source_leaves_no_word_in_the_data_directory(
    world: World, more: dict[str, str], absolute: bool
) -> None:
    outside = world.root / "private"
    (outside / "package").mkdir(parents=True)
    for path in (outside / "secret.txt", outside / "package" / "SKILL.md"):
        path.write_text(
            f"---\nname: {SECRET}\ndescription: Query an SQL database {SECRET}.\n---\n\n# {SECRET}\n", encoding="utf-8"
        )
    lib = world.lib("main")

    def link(place: Path, target: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target if absolute else os.path.relpath(target, place.parent))

    link(lib / "file" / "SKILL.md", outside / "secret.txt")
    link(lib / "folder", outside / "package")
    link(lib / "chain" / "first", lib / "chain" / "second")
    link(lib / "chain" / "second", outside)
    link(lib / "sql-tuning" / "notes.md", outside / "secret.txt")
    link(lib / "pod-audit" / "more", outside / "package")

    world.build(**more)

    assert records(world).keys() == LIVE
    assert _holding(world, SECRET) == []
    assert {problem.kind for problem in rows(world, "problems", Problem)} == {"outside_link"}
    assert records(world)["main:sql-tuning"].files == 0


def _holding(world: World, word: str) -> list[str]:
    """Everything in the data directory that holds a word, the memo's compressed values included."""
    found = [str(path) for path in world.data.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]
    memo = world.open().memo
    try:
        for step in STEPS:
            keys = [key.hex() for (key,) in memo.connection.execute(f"SELECT key FROM {step}")]
            found += [f"{step} {key}" for key, value in memo.get(step, keys).items() if word.encode() in value]
    finally:
        memo.close()
    return found


def test_the_search_for_a_word_in_the_data_directory_finds_one_that_is_there(
    world: World, more: dict[str, str]
) -> None:
    put(world, "open", f"---\nname: open\ndescription: Query an SQL database.\n---\n\n{'text ' * 200}{SECRET}\n")
    world.build(**more)

    assert any(place.startswith("scan ") for place in _holding(world, SECRET))


# ------------------------------------------------------------------------------------------ A7, A8: services that are down


def test_a_chroma_server_that_goes_down_stops_builds_and_nothing_else(world: World) -> None:
    server = Server(world.root / "server")
    try:
        more = {"RETRIEVAL_CHROMA_MODE": "server", "RETRIEVAL_CHROMA_PORT": str(server.port)}
        world.build(**more)
        before = world.snapshot()
        world.skill("sql-tuning", "Tune slow SQL queries, and say why they were slow.")
    finally:
        server.kill()

    told = world.json("build", code=4, **more)
    status = world.run("status", **more)
    answer = world.json("search", "tune a slow query", **more)

    assert str(server.port) in told["where"]
    assert told["next"]
    assert world.snapshot() == before
    assert status.returncode in {0, 3}, status.stderr
    assert f"127.0.0.1:{server.port}" in status.stdout
    assert answer["lanes"]["lexical"]["used"] is True
    assert answer["lanes"]["semantic"]["used"] is False
    assert "Chroma server" in answer["lanes"]["semantic"]["reason"]
    assert answer["results"][0]["id"] == "main:sql-tuning"

    server.start()
    try:
        world.build(**more)
        assert records(world)["main:sql-tuning"].description.endswith("why they were slow.")
    finally:
        server.kill()


def test_an_embedding_endpoint_that_goes_down_stops_builds_and_no_other_model_steps_in(
    world: World, server: EmbeddingServer, more: dict[str, str]
) -> None:
    world.build(**more)
    before, kept = world.snapshot(), store_rows(world, **more)
    world.skill("sql-tuning", "Tune slow SQL queries, and say why they were slow.")
    server.close()

    told = world.json("build", code=4, **more)
    answer = world.json("search", "tune a slow query", **more)

    assert server.url in told["where"]
    assert told["next"]
    assert world.snapshot() == before
    assert list(store_rows(world, **more).ids) == list(kept.ids)
    assert _vectors_kept(world) == len(SUBJECTS)  # nothing was embedded by anybody else
    assert answer["lanes"]["lexical"]["used"] is True
    assert answer["lanes"]["semantic"]["used"] is False
    assert "does not answer" in answer["lanes"]["semantic"]["reason"]
    assert answer["results"][0]["id"] == "main:sql-tuning"


def _vectors_kept(world: World) -> int:
    memo = world.open().memo
    try:
        return int(memo.connection.execute("SELECT count(*) FROM embed").fetchone()[0])
    finally:
        memo.close()


# ------------------------------------------------------------------------------------- B: what went wrong without a word


def test_an_override_takes_a_skill_out_of_review_into_every_lane(world: World, more: dict[str, str]) -> None:
    world.skill("odd", "Qwx plmb zzt.", "Vrrp klm nnt. " * 30)
    world.build(**more)
    assert "main:odd" not in records(world)
    world.overrides.write_text('[skills]\n"main:odd" = ["documents"]\n', encoding="utf-8")

    world.build(**more)

    assert records(world)["main:odd"].categories == ("documents",)
    assert "main:odd" in store_rows(world, **more).ids
    assert any("odd" in page for page in world.catalog() if page.startswith("skills/"))


@pytest.mark.parametrize(
    "frontmatter",
    [
        "name: use-it\ndescription: Use when: an SQL database is slow",
        "name:\tuse-it\ndescription:\tUse when: an SQL database is slow",
        "\ufeff---\nname: use-it\ndescription: Use when an SQL database is slow",
        "name: use-it\ndescription: Use when an SQL database is slow\n--- ",
    ],
)
def test_frontmatter_that_is_not_quite_yaml_keeps_name_and_description(
    world: World, more: dict[str, str], frontmatter: str
) -> None:
    text = frontmatter if frontmatter.startswith("\ufeff") else f"---\n{frontmatter}"
    put(world, "folder-name", f"{text}\n---\n\n# Title\n\nText about it.\n")

    world.build(**more)

    record = records(world)["main:folder-name"]
    assert record.name == "use-it"
    assert re.fullmatch(r"Use when:? an SQL database is slow", record.description)


def test_frontmatter_that_had_to_be_repaired_says_so_in_the_record(world: World, more: dict[str, str]) -> None:
    put(world, "repaired", "---\nname: repaired\ndescription: Use when: an SQL database is slow\n---\n\n# Title\n")

    world.build(**more)

    assert records(world)["main:repaired"].diagnostics
    assert records(world)["main:sql-tuning"].diagnostics == ()


def test_a_comment_in_a_code_block_is_no_heading(world: World, more: dict[str, str]) -> None:
    code = "```sh\n# not-a-heading one\nmake\n```\n\n~~~\n## not-a-heading two\n~~~\n\n# The title\n\n#\nnot-a-heading three\n"
    put(world, "fenced", f"---\nname: fenced\ndescription: Query an SQL database.\n---\n\n{code}")

    world.build(**more)

    snapshot = Live(world.data).current()
    descriptor: Descriptor = snapshot.descriptor(snapshot.ids.index("main:fenced"))
    assert descriptor.headings == ("The title",)


def test_duplicates_are_named_with_what_stands_for_them(tmp_path: Path, more: dict[str, str]) -> None:
    world = World(tmp_path, "main", "side")
    world.library()
    path = world.lib("side") / "copies" / "sql" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_bytes((world.lib("main") / "sql-tuning" / "SKILL.md").read_bytes())

    world.build(**more)

    (row,) = rows(world, "select", Selected, "side")
    assert (row.status, row.winner) == ("duplicate", "main:sql-tuning")
    assert "main:sql-tuning" in row.reason
    assert records(world)["main:sql-tuning"].duplicates == ("side:copies/sql",)
    listed = world.json("status", "--duplicates", **more)["lists"]["duplicate"]
    assert [item["id"] for item in listed] == ["side:copies/sql"]


def test_two_different_skills_of_one_name_both_stay(tmp_path: Path, more: dict[str, str]) -> None:
    world = World(tmp_path, "main", "side")
    world.library()
    world.skill(
        "sql-tuning",
        "Choose strings for a guitar that plays in a database.",
        "# Strings\n\n" + "Tune a string. " * 40,
        source="side",
    )

    world.build(**more)

    assert records(world).keys() >= {"main:sql-tuning", "side:sql-tuning"}


def test_a_keyword_inside_another_word_categorizes_nothing(tmp_path: Path, more: dict[str, str]) -> None:
    world = World(tmp_path, "security-data")
    world.skill(
        "genomics-metrics",
        "Compare genomics metrics of samples.",
        "# Genomics\n\n" + "Genomics metrics. " * 30,
        source="security-data",
    )

    world.build(**more)

    (row,) = rows(world, "categorize", Categorized, "security-data")
    assert not {"ot-ics", "cybersecurity", "data"} & set(row.categories)


def test_sources_whose_names_differ_in_punctuation_alone_have_rows_of_their_own(
    tmp_path: Path, more: dict[str, str]
) -> None:
    names = ("my.skills", "my-skills", "my_skills")
    world = World(tmp_path, *names)
    for name in names:
        world.skill(f"of-{len(name)}-{names.index(name)}", f"Query a database, way {names.index(name)}.", source=name)
    world.build(**more)
    first = store_rows(world, **more)

    again = world.counts(**more)

    assert again == {}
    assert list(first.ids) == sorted(f"{name}:of-{len(name)}-{names.index(name)}" for name in names)
    assert [sum(page.startswith(f"{kind}/") for page in world.catalog()) for kind in ("skills", "sources")] == [3, 3]


def test_a_machine_without_iwe_builds_the_whole_catalog(world: World, more: dict[str, str]) -> None:
    (world.root / "empty").mkdir()

    told = world.json("build", **more, PATH=str(world.root / "empty"))

    assert told["totals"]["indexed"] == len(SUBJECTS)
    assert len([page for page in world.catalog() if page.startswith("skills/")]) == len(SUBJECTS)


def test_hostile_text_reaches_no_page_of_the_catalog_as_control_sequence_or_link(
    world: World, more: dict[str, str]
) -> None:
    evil = "SQL database [[index]] [out](../../sources.md) <https://evil.example> ![x](y) \x1b[31mred\x1b]0;title\x07 \u202eback"
    quoted = msgspec.json.encode(evil).decode()
    put(world, "evil", f"---\nname: {quoted}\ndescription: {quoted}\ntags: [{quoted}]\n---\n\n# {evil}\n\n{evil}\n")

    world.build(**more)

    pages = {path: data.decode("utf-8") for path, data in world.catalog().items() if path.endswith(".md")}
    (card,) = (text for path, text in pages.items() if path.startswith("skills/main/evil"))
    assert "red" in card
    assert [path for path, text in pages.items() if re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)] == []
    # Whatever is not escaped and makes a link leads to one of our own pages.
    for path, text in pages.items():
        body = text.partition("\n---\n")[2] or text
        targets = re.findall(r"(?<!\\)\]\(([^)\s]+)\)", body)
        assert all((world.data / "catalog" / Path(path).parent / target).is_file() for target in targets), path
        assert not re.search(r"(?<!\\)\[\[|(?<!\\)<https?:", body), path


# -------------------------------------------------------------------------------------------------- C: cost and tidiness


def test_a_build_with_nothing_to_do_writes_no_file_again(world: World, more: dict[str, str]) -> None:
    for _ in range(2):
        world.build(**more)
    before = _stamps(world)

    world.build(**more)

    assert _stamps(world) == before


def _stamps(world: World) -> dict[str, tuple[int, int, int]]:
    """Size, time and inode of everything generated, but for doit's cache and what the scan remembers of young files."""
    ours = [
        path
        for path in world.data.rglob("*")
        if path.is_file()
        and path.name != "doit.json"
        and path.parent.name != "scan-cache"
        and "sqlite3" not in path.name
    ]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns, path.stat().st_ino) for path in ours}


def test_queries_open_the_index_once_and_leave_no_trace(world: World) -> None:
    world.build()
    before = _stamps(world)
    asked = searcher(world)

    first = asked.answer(Query("tune a slow query"))
    opened = asked.live.current()
    second = asked.answer(Query("audit pods"))

    assert asked.live.current() is opened
    assert [first.rows[0].record.id, second.rows[0].record.id] == ["main:sql-tuning", "main:pod-audit"]
    assert _stamps(world) == before


def test_the_lock_lies_in_the_data_directory_it_guards(world: World, more: dict[str, str]) -> None:
    """Two data directories never wait for each other, and one never has two locks."""
    other = elsewhere(world)
    build = world.open(**more)
    build.writer()
    try:
        report = other.build(**more, RETRIEVAL_LOCK_TIMEOUT="0")
    finally:
        build.close()

    assert report.published
    assert (world.data / "writer.lock").is_file()


def test_the_builds_own_pages_are_never_found_as_skills(tmp_path: Path, more: dict[str, str]) -> None:
    world = World(tmp_path)
    world.library()
    world.build(**more)
    world.config.write_text(
        f'[[sources]]\nname = "main"\nkind = "skills"\npath = {msgspec.json.encode(str(world.data / "catalog")).decode()}\n',
        encoding="utf-8",
    )

    told = world.json("build", code=2, **more)

    assert "sources.toml" in told["where"]
    assert told["next"]
