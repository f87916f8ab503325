"""The real `iwe`, and catalogs written to disk for it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from pipeline.reader import read_skill
from pipeline.steps import card, descriptor, hubs
from serve.contract import Record
from tests.programs import needed
from tests.support import OUTER_ENVIRONMENT, run

SKILLS = 300


class Library:
    """A catalog on disk and the `iwe` that reads it."""

    def __init__(self, command: str, root: Path, skills) -> None:
        self.root = root
        self.skills = skills
        self._command = command
        self.pages = {card.card_path(record.id): card.make(record, described) for record, described in skills}
        self.hubs = hubs.hubs([record for record, _described in skills], {"documents": "Documents"})
        for name, text in (self.pages | self.hubs | hubs.library()).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")

    def run(self, *arguments: str):
        return run([self._command, *arguments], cwd=self.root, environment=OUTER_ENVIRONMENT)

    def json(self, *arguments: str):
        done = self.run(*arguments, "-f", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def documents(self):
        """Every document with its edges, by key."""
        return {item["key"]: item for item in self.json("find", "--limit", "0")}


@pytest.fixture(scope="session")
def iwe() -> str:
    return str(needed("iwe"))


@pytest.fixture(scope="session")
def library(iwe, tmp_path_factory):
    """Makes a catalog out of (record, descriptor) pairs."""
    return lambda skills: Library(iwe, tmp_path_factory.mktemp("catalog"), skills)


@pytest.fixture(scope="session")
def real(library, shared):
    """The catalog of some hundred real skills."""
    return library(list(_real_skills(shared / "corpus" / "skills.tar.xz")))


def _real_skills(archive: Path):
    with tarfile.open(archive, "r:xz") as tar:
        seen = 0
        for member in tar:
            path = Path(member.name)
            if not member.isfile() or path.name != "SKILL.md":
                continue
            data = tar.extractfile(member).read()
            reading = read_skill(data, path.parent.name)
            made = descriptor.make(reading.name, reading.description, reading.tags, reading.headings, reading.head)
            yield (
                Record(
                    id=f"corpus:{path.parent.as_posix()}",
                    name=reading.name,
                    description=reading.description,
                    source="corpus",
                    state=("cold", "archived")[seen % 2],
                    categories=(("documents", "web", "data")[seen % 3],),
                    tags=reading.tags,
                    path=f"/library/{path.as_posix()}",
                    digest="00",
                    package_digest="00",
                    files=0,
                    bytes=len(data),
                ),
                made,
            )
            seen += 1
            if seen == SKILLS:
                return
