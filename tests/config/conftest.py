"""A world of its own for each test of the configuration: a home, a current folder, an environment, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.settings import ConfigWarning, Settings, load_settings
from tests.support import ROOT


class World:
    """Folders and files under one root. `env` is the whole environment that `load` shows to the settings."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = self.folder("home")
        self.cwd = self.folder("here")
        self.env: dict[str, str] = {}

    def folder(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return path

    def config(self, text: str | bytes) -> Path:
        return self.write("here/sources.toml", text)

    def skills(self, name: str) -> Path:
        """A folder with one skill in it."""
        self.write(f"{name}/one/SKILL.md", "---\nname: one\n---\n")
        return self.root / name

    def load(self, config: str | Path | None = None, **more: object) -> Settings:
        return load_settings(config, environ=self.env, cwd=self.cwd, home=self.home, **more)

    def fails(self, config: str | Path | None = None, **more: object) -> tuple[str, str, str]:
        """What, where and next step of the one error that loading ends with; places are told from the root on."""
        with pytest.raises(ConfigError) as caught:
            self.load(config, **more)
        error = caught.value
        assert error.code == 2
        assert error.next_step
        return self.short(error.what), self.short(error.where), self.short(error.next_step)

    def warns(self, config: str | Path | None = None) -> list[tuple[str, str, str]]:
        return [self.told(warning) for warning in self.load(config).warnings]

    def told(self, warning: ConfigWarning) -> tuple[str, str, str]:
        assert warning.next_step
        return self.short(warning.what), self.short(warning.where), self.short(warning.next_step)

    def short(self, text: str) -> str:
        return text.replace(f"{self.root}/", "")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def root() -> Path:
    return ROOT
