"""What an answer says of the files beside a SKILL.md is found by looking at no more than a fixed number of entries."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from serve import bundle

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("kind", ["folders", "files", "nested"])
def test_folders_count_as_files_do_among_what_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(bundle, "VISITED", 20)
    (tmp_path / "SKILL.md").touch()
    (tmp_path / "a.txt").touch()
    for number in range(200):
        if kind == "files":
            (tmp_path / "b").mkdir(exist_ok=True)
            (tmp_path / "b" / str(number)).symlink_to(tmp_path)
        else:
            (tmp_path / ("b/c" if kind == "nested" else "") / str(number)).mkdir(parents=True)
    opened: list[str] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: opened.append(path) or scan(path))

    found = bundle.bundled(str(tmp_path / "SKILL.md"))

    assert found == bundle.Bundle(["a.txt"], more=True)
    assert len(opened) <= 4


def test_a_package_at_the_bound_is_listed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "VISITED", 4)
    (tmp_path / "b").mkdir()
    for name in ("SKILL.md", "a.txt", "b/c.txt"):
        (tmp_path / name).touch()

    assert bundle.bundled(str(tmp_path / "SKILL.md")) == bundle.Bundle(["a.txt", "b/c.txt"], more=False)
