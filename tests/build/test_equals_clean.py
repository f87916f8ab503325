"""The index is a function of the sources: after any history of edits and damage an incremental build equals a clean one."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipeline.sources import listing
from pipeline.tasks import reselect, scan
from tests.build.compare import assert_same_index, assert_sound, elsewhere, left_overs
from tests.embedder.loopback import EmbeddingServer
from tests.world import World

SOURCES = ("main", "side")
NAMES = ("sql-tuning", "pod-audit", "release-notes", "csv-cleaning", "odd")
STATES = ("cold", "hidden", "archived", "native")
WORDS = ("an SQL database", "a CSV spreadsheet", "Kubernetes pods", "nothing anybody knows")

Edit = tuple[str, int, int]  # what is done, and two numbers that choose to which and how


class History:
    """A world that edits are made to. Edits of what is not there do nothing, so that any list of them is a history."""

    def __init__(self, root: Path, server: EmbeddingServer) -> None:
        self.world = World(root, *SOURCES)
        self.more = {
            "RETRIEVAL_EMBEDDER": "endpoint",
            "RETRIEVAL_EMBEDDING_URL": server.url,
            "RETRIEVAL_EMBEDDING_MODEL": "loopback",
        }
        self.states = dict.fromkeys(SOURCES, "cold")
        for name in NAMES[:3]:
            self.world.skill(name)

    def configure(self) -> None:
        """Write the configuration as it is described here, states included."""
        self.world.configure()
        text = self.world.config.read_text(encoding="utf-8")
        for source, state in self.states.items():
            text = re.sub(rf'(name = "{source}"[^\[]*?state = )"cold"', rf'\1"{state}"', text)
        self.world.config.write_text(text, encoding="utf-8")

    def make(self, edit: Edit) -> None:
        what, which, how = edit
        skills = sorted(path.parent for source in SOURCES for path in self.world.lib(source).rglob("SKILL.md"))
        skill = skills[which % len(skills)] if skills else None
        EDITS[what](self, skill, which, how)

    def compare(self) -> None:
        """Build, and hold the result against a clean build in another data directory."""
        self.world.build(**self.more)
        clean = elsewhere(self.world)
        shutil.rmtree(clean.data, ignore_errors=True)
        clean.build(**self.more)
        assert_sound(self.world)
        assert_same_index(self.world, clean, **self.more)
        assert left_overs(self.world) == []


def add(history: History, _skill: Path | None, which: int, how: int) -> None:
    name, source = NAMES[which % len(NAMES)], SOURCES[how % 2]
    files = {"notes.md": f"notes {how}\n"} if how % 3 == 0 else None
    history.world.skill(f"group-{how % 3}/{name}" if how % 5 == 0 else name, source=source, files=files)


def edit_body(_history: History, skill: Path | None, _which: int, how: int) -> None:
    _change(skill, lambda text: f"{text}\n## Remark {how}\n\nAbout {WORDS[how % 4]}.\n")


def edit_description(_history: History, skill: Path | None, _which: int, how: int) -> None:
    _change(skill, lambda text: _described(text, f"Work number {how} on {WORDS[how % 4]}. Use when {how} comes up."))


def edit_unseen(_history: History, skill: Path | None, _which: int, _how: int) -> None:
    """An edit of the same length that leaves the time of modification as it was."""
    if skill is not None:
        stat = (skill / "SKILL.md").stat()
        _change(
            skill, lambda text: text.replace("twice", "never") if "twice" in text else text.replace("never", "twice")
        )
        os.utime(skill / "SKILL.md", ns=(stat.st_atime_ns, stat.st_mtime_ns))


def break_frontmatter(_history: History, skill: Path | None, _which: int, how: int) -> None:
    _change(skill, lambda text: text.replace("description: ", f"description: see: {how}: [", 1))


def rename(_history: History, skill: Path | None, _which: int, how: int) -> None:
    if skill is not None and not (target := skill.with_name(f"{skill.name[:20]}-{how % 4}")).exists():
        skill.rename(target)


def delete(_history: History, skill: Path | None, _which: int, _how: int) -> None:
    if skill is not None:
        shutil.rmtree(skill)


def move(history: History, skill: Path | None, _which: int, _how: int) -> None:
    if skill is not None:
        here = next(source for source in SOURCES if skill.is_relative_to(history.world.lib(source)))
        target = history.world.lib(SOURCES[here == "main"]) / skill.relative_to(history.world.lib(here))
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            skill.rename(target)


def duplicate(history: History, skill: Path | None, _which: int, how: int) -> None:
    if skill is not None:
        target = history.world.lib(SOURCES[how % 2]) / f"copy-{how % 3}" / skill.name
        if not target.exists() and not target.is_relative_to(skill):
            shutil.copytree(skill, target)


def link(history: History, skill: Path | None, _which: int, how: int) -> None:
    if skill is not None:
        place = skill.parent / f"link-{how % 3}"
        if not place.is_symlink() and not place.exists():
            place.symlink_to(skill if how % 2 else history.world.root, target_is_directory=True)


def override(history: History, skill: Path | None, _which: int, how: int) -> None:
    if skill is not None:
        source = next(source for source in SOURCES if skill.is_relative_to(history.world.lib(source)))
        folder = skill.relative_to(history.world.lib(source)).as_posix()
        category = ("media", "documents")[how % 2]
        history.world.overrides.write_text(f'[skills]\n"{source}:{folder}" = ["{category}"]\n', encoding="utf-8")


def remove_override(history: History, _skill: Path | None, _which: int, _how: int) -> None:
    history.world.overrides.unlink(missing_ok=True)


def change_keyword(history: History, _skill: Path | None, _which: int, how: int) -> None:
    path = history.world.taxonomy
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("keywords = [", f'keywords = ["remark {how}",', 1), encoding="utf-8")


def change_label(history: History, _skill: Path | None, _which: int, how: int) -> None:
    path = history.world.taxonomy
    path.write_text(path.read_text(encoding="utf-8").replace('label = "', f'label = "{how} ', 3), encoding="utf-8")


def touch(_history: History, skill: Path | None, _which: int, _how: int) -> None:
    if skill is not None:
        os.utime(skill / "SKILL.md")


def bundle(_history: History, skill: Path | None, _which: int, how: int) -> None:
    if skill is not None:
        (skill / "notes.md").write_text(f"other notes {how}\n", encoding="utf-8")


def make_executable(_history: History, skill: Path | None, _which: int, how: int) -> None:
    if skill is not None and (skill / "notes.md").exists():
        (skill / "notes.md").chmod(0o755 if how % 2 else 0o644)


def change_state(history: History, _skill: Path | None, which: int, how: int) -> None:
    history.states[SOURCES[which % 2]] = STATES[how % 4]
    history.configure()


def change_globs(history: History, _skill: Path | None, which: int, how: int) -> None:
    history.world.extra[SOURCES[which % 2]] = ("", 'exclude = ["copy-0"]', 'include = ["group-*", "sql-*"]')[how % 3]
    history.configure()


def change_policy(history: History, _skill: Path | None, _which: int, how: int) -> None:
    history.world.policy = ("review", "index")[how % 2]
    history.configure()


def change_sources(history: History, _skill: Path | None, which: int, how: int) -> None:
    history.world.sources = [list(SOURCES), list(reversed(SOURCES)), ["main"], ["side"]][(which + how) % 4]
    history.configure()


def lose_memo(history: History, _skill: Path | None, _which: int, _how: int) -> None:
    _lose(history, "memo.sqlite3*")


def damage_memo(history: History, _skill: Path | None, _which: int, how: int) -> None:
    path = history.world.data / "memo.sqlite3"
    if path.exists():
        data = bytearray(path.read_bytes())
        start = (how * 7919) % len(data)
        data[start : start + 64] = b"\xa5" * len(data[start : start + 64])
        path.write_bytes(data)


def lose_database(history: History, _skill: Path | None, _which: int, _how: int) -> None:
    _lose(history, "build/doit.json")


def lose_snapshot(history: History, _skill: Path | None, _which: int, how: int) -> None:
    _lose(history, ("snapshots", "snapshots/current.json")[how % 2])


def lose_store(history: History, _skill: Path | None, _which: int, _how: int) -> None:
    _lose(history, "chroma")


def lose_manifests(history: History, _skill: Path | None, which: int, how: int) -> None:
    _lose(history, ("build", "build/*/main.jsonl", "build/scan-cache", "build/*.jsonl")[(which + how) % 4])


def edit_manifest(history: History, _skill: Path | None, which: int, how: int) -> None:
    found = sorted((history.world.data / "build").rglob("*.jsonl"))
    if found:
        path = found[(which + how * 5) % len(found)]
        path.write_bytes(path.read_bytes().replace(b"a", b"o", 3))


def lose_card(history: History, _skill: Path | None, which: int, _how: int) -> None:
    pages = sorted((history.world.data / "catalog").rglob("*.md"))
    if pages:
        pages[which % len(pages)].unlink()


def edit_card(history: History, _skill: Path | None, which: int, how: int) -> None:
    pages = sorted((history.world.data / "catalog").rglob("*"))
    files = [path for path in pages if path.is_file()]
    if files:
        files[(which + how) % len(files)].write_text("mine now\n", encoding="utf-8")


def stray_card(history: History, _skill: Path | None, _which: int, how: int) -> None:
    folder = history.world.data / "catalog" / ("skills/main", "categories", "of-my-own")[how % 3]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"stray-{how}.md").write_text("# stray\n", encoding="utf-8")


def lose_catalog(history: History, _skill: Path | None, _which: int, _how: int) -> None:
    _lose(history, "catalog")


def build(history: History, _skill: Path | None, _which: int, _how: int) -> None:
    history.world.build(**history.more)


def _change(skill: Path | None, change: Callable[[str], str]) -> None:
    if skill is not None:
        path = skill / "SKILL.md"
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def _described(text: str, description: str) -> str:
    return "\n".join(
        f"description: {description}" if line.startswith("description:") else line for line in text.split("\n")
    )


def _lose(history: History, pattern: str) -> None:
    for path in history.world.data.glob(pattern):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


EDITS: dict[str, Callable[[History, Path | None, int, int], None]] = {
    edit.__name__: edit
    for edit in (
        *(add, edit_body, edit_description, edit_unseen, break_frontmatter, rename, delete, move, duplicate, link),
        *(override, remove_override, change_keyword, change_label, touch, bundle, make_executable),
        *(change_state, change_globs, change_policy, change_sources),
        *(lose_memo, damage_memo, lose_database, lose_snapshot, lose_store, lose_manifests, edit_manifest),
        *(lose_card, edit_card, stray_card, lose_catalog, build),
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
        patch.setattr(reselect, "MOST", 1)  # deciding anew only what an edit reaches, however small the library
        if settled:
            patch.setattr(listing, "RACY_NS", 0)
            patch.setattr(scan, "RACY_NS", 0)
        history = History(root, server)
        history.world.build(**history.more)
        for number, made in enumerate(rounds):
            for edit in made:
                history.make(edit)
            if number + 1 < len(rounds):
                history.world.build(**history.more)
        history.compare()


_KEPT = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=_KEPT,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
@given(histories, st.booleans())
def test_after_any_edits_an_incremental_build_equals_a_clean_one(
    tmp_path_factory: pytest.TempPathFactory, server: EmbeddingServer, rounds: list[list[Edit]], settled: bool
) -> None:
    check(tmp_path_factory.mktemp("history"), server, rounds, settled=settled)


@pytest.mark.long
@settings(
    max_examples=100, deadline=None, suppress_health_check=_KEPT, phases=[Phase.explicit, Phase.generate, Phase.shrink]
)
@given(histories, st.booleans())
def test_after_any_of_many_histories_an_incremental_build_equals_a_clean_one(
    tmp_path_factory: pytest.TempPathFactory, server: EmbeddingServer, rounds: list[list[Edit]], settled: bool
) -> None:
    check(tmp_path_factory.mktemp("history"), server, rounds, settled=settled)


@pytest.mark.long
@pytest.mark.parametrize("what", sorted(EDITS))
@pytest.mark.requirement("R221")
def test_after_each_kind_of_edit_an_incremental_build_equals_a_clean_one(
    tmp_path: Path, server: EmbeddingServer, what: str
) -> None:
    check(tmp_path, server, [[("add", 3, 5)], [(what, 1, 2)], [(what, 2, 3)]], settled=True)
