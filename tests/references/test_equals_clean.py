"""References are a function of their files: after any edits and damage an incremental build equals a clean one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipeline.sources import listing
from pipeline.tasks.references import document
from tests.build.compare import assert_sound, elsewhere, left_overs
from tests.embedder.loopback import EmbeddingServer
from tests.references.support import FAQ, GUIDE, DocsWorld

pytestmark = pytest.mark.long

FOLDERS = ("document", "section", "terms", "embed", "problems")
NAMES = ("a.md", "guides/b.md", "guides/deep/c.markdown", "d.md")
SOURCES = ("docs", "more")
Edit = tuple[str, int, int]


class History:
    """A world that edits are made to. Edits of what is not there do nothing."""

    def __init__(self, root: Path, server: EmbeddingServer) -> None:
        self.world = DocsWorld(root, *SOURCES)
        self.more = {
            "RETRIEVAL_EMBEDDER": "endpoint",
            "RETRIEVAL_EMBEDDING_URL": server.url,
            "RETRIEVAL_EMBEDDING_MODEL": "loopback",
        }
        self.world.skill("sql-tuning")
        self.world.books()

    def build(self) -> None:
        self.world.build(**self.more)

    def file(self, which: int) -> Path | None:
        found = sorted(path for name in SOURCES for path in self.world.folder(name).rglob("*.m*") if path.is_file())
        return found[which % len(found)] if found else None

    def compare(self) -> None:
        """Build, and hold the result against a clean build in another data directory."""
        self.build()
        clean = elsewhere(self.world)
        shutil.rmtree(clean.data, ignore_errors=True)
        clean.build(**self.more)
        assert_sound(self.world)
        assert self.world.snapshot() == clean.snapshot()
        assert _manifests(self.world) == _manifests(clean)
        assert left_overs(self.world) == []


def _manifests(world: DocsWorld) -> dict[str, bytes]:
    root = world.data / "build"
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for folder in FOLDERS
        for path in sorted((root / folder).glob("*"))
    }


def add(history: History, which: int, how: int) -> None:
    text = (GUIDE, FAQ, f"# Only {how}\n\nText {how}.\n", "no heading at all\n")[how % 4]
    history.world.document(NAMES[which % 4], text, source=SOURCES[how % 2])


def edit(history: History, which: int, how: int) -> None:
    if path := history.file(which):
        path.write_bytes(path.read_bytes() + f"\n## Added {how}\n\nAbout {how}.\n".encode())


def cut_short(history: History, which: int, how: int) -> None:
    if path := history.file(which):
        path.write_bytes(path.read_bytes()[: how * 20])


def swap_sections(history: History, which: int, _how: int) -> None:
    if path := history.file(which):
        head, *rest = path.read_text(encoding="utf-8", errors="replace").split("\n## ")
        path.write_text("\n## ".join([head, *reversed(rest)]), encoding="utf-8")


def retitle(history: History, which: int, how: int) -> None:
    if path := history.file(which):
        path.write_bytes(f"---\ntitle: Title {how}\n---\n".encode() + path.read_bytes())


def lengthen(history: History, which: int, how: int) -> None:
    if path := history.file(which):
        path.write_bytes(path.read_bytes() + (f"\n# Long {how}\n\n" + f"word{how} " * 1_500).encode())


def make_binary(history: History, which: int, _how: int) -> None:
    if path := history.file(which):
        path.write_bytes(bytes(range(256)))


def rename(history: History, which: int, how: int) -> None:
    if path := history.file(which):
        path.rename(path.with_name(f"renamed-{how}.md"))


def move(history: History, which: int, how: int) -> None:
    if path := history.file(which):
        path.rename(history.world.folder(SOURCES[how % 2]) / path.name)


def delete(history: History, which: int, _how: int) -> None:
    if path := history.file(which):
        path.unlink()


def copy(history: History, which: int, how: int) -> None:
    target = history.world.folder(SOURCES[how % 2]) / f"copy-{how}.md"
    if (path := history.file(which)) and path != target:
        shutil.copyfile(path, target)


def link(history: History, which: int, how: int) -> None:
    target = history.world.folder() / f"link-{how}.md"
    if not target.is_symlink() and not target.exists():
        target.symlink_to(("a.md", "nowhere.md", "../elsewhere.md")[which % 3])


def change_globs(history: History, which: int, how: int) -> None:
    history.world.globs[SOURCES[which % 2]] = ("", 'exclude = ["guides"]', 'include = ["**/*.md"]')[how % 3]
    history.world.configure()


def change_sources(history: History, which: int, how: int) -> None:
    history.world.docs = [list(SOURCES), list(reversed(SOURCES)), ["docs"], []][(which + how) % 4]
    history.world.configure()


def edit_skill(history: History, _which: int, how: int) -> None:
    history.world.skill("sql-tuning", body=f"# Tuning\n\nBody {how} about an SQL database.\n")


def lose_memo(history: History, _which: int, _how: int) -> None:
    _lose(history, "memo.sqlite3*")


def lose_manifests(history: History, which: int, how: int) -> None:
    _lose(
        history,
        ("build", "build/document/*", "build/section/*", "build/document-cache", "build/doit.json")[(which + how) % 5],
    )


def edit_manifest(history: History, which: int, how: int) -> None:
    found = [path for name in FOLDERS for path in sorted((history.world.data / "build" / name).glob("*.jsonl"))]
    if found:
        path = found[(which + how) % len(found)]
        path.write_bytes(path.read_bytes().replace(b"a", b"o", 3))


def lose_snapshot(history: History, _which: int, how: int) -> None:
    _lose(history, ("snapshots", "snapshots/*/references-*")[how % 2])


def damage_snapshot(history: History, which: int, how: int) -> None:
    found = sorted((history.world.data / "snapshots" / history.world.generation).glob("references-*"))
    if found and (data := bytearray(found[which % len(found)].read_bytes())):
        data[(how * 7919) % len(data)] ^= 0x5A
        found[which % len(found)].write_bytes(data)


def _lose(history: History, pattern: str) -> None:
    for path in history.world.data.glob(pattern):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


EDITS: dict[str, Callable[[History, int, int], None]] = {
    item.__name__: item
    for item in (
        *(add, edit, cut_short, swap_sections, retitle, lengthen, make_binary, rename, move, delete, copy, link),
        *(change_globs, change_sources, edit_skill, lose_memo, lose_manifests, edit_manifest, lose_snapshot),
        damage_snapshot,
    )
}

edits = st.tuples(st.sampled_from(sorted(EDITS)), st.integers(0, 9), st.integers(0, 19))
histories = st.lists(st.lists(edits, min_size=1, max_size=4), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    made = EmbeddingServer()
    yield made
    made.close()


def check(root: Path, server: EmbeddingServer, rounds: list[list[Edit]], *, settled: bool) -> None:
    """A first build, then rounds of edits with a build after each; at the end the comparison.

    settled: builds believe what stats tell, as they do when files have not been touched for a while.
    """
    with pytest.MonkeyPatch.context() as patch:
        if settled:
            patch.setattr(listing, "RACY_NS", 0)
            patch.setattr(document, "RACY_NS", 0)
        history = History(root, server)
        history.build()
        for number, made in enumerate(rounds):
            for what, which, how in made:
                EDITS[what](history, which, how)
            if number + 1 < len(rounds):
                history.build()
        history.compare()


_KEPT = [HealthCheck.too_slow, HealthCheck.data_too_large]
_PHASES = [Phase.explicit, Phase.generate, Phase.shrink]


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=_KEPT, phases=_PHASES)
@given(histories, st.booleans())
def test_after_any_edits_an_incremental_build_equals_a_clean_one(
    tmp_path_factory: pytest.TempPathFactory, server: EmbeddingServer, rounds: list[list[Edit]], settled: bool
) -> None:
    check(tmp_path_factory.mktemp("history"), server, rounds, settled=settled)


@pytest.mark.long
@settings(max_examples=100, deadline=None, suppress_health_check=_KEPT, phases=_PHASES)
@given(histories, st.booleans())
def test_after_any_of_many_histories_an_incremental_build_equals_a_clean_one(
    tmp_path_factory: pytest.TempPathFactory, server: EmbeddingServer, rounds: list[list[Edit]], settled: bool
) -> None:
    check(tmp_path_factory.mktemp("history"), server, rounds, settled=settled)


@pytest.mark.long
@pytest.mark.parametrize("what", sorted(EDITS))
def test_after_each_kind_of_edit_an_incremental_build_equals_a_clean_one(
    tmp_path: Path, server: EmbeddingServer, what: str
) -> None:
    check(tmp_path, server, [[("add", 3, 5)], [(what, 1, 2)], [(what, 2, 3)]], settled=True)
