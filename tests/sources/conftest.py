"""Builds folders of skills for the tests of this folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


class Library:
    """A folder of files under test. Each change gives the folders around it times of their own, however fast it comes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ticks = 0
        root.mkdir(parents=True, exist_ok=True)

    def tick(self, path: Path) -> None:
        """Gives each folder from `path` up to the library's own a new time of change."""
        self.ticks += 1
        for folder in (path, *path.parents):
            os.utime(folder, ns=(self.ticks, self.ticks))
            if folder == self.root:
                return

    def write(self, *names: str, text: str = "---\nname: a\n---\n") -> Library:
        for name in names:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            self.tick(path.parent)
        return self

    def link(self, name: str, target: str | Path) -> Library:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        self.tick(path.parent)
        return self


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "library")
