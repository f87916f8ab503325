"""A world with references beside its skills, and questions put to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from serve.embedder import EmbedderConfig
from serve.references import References
from serve.settings import ServeSettings
from tests.world import World

GUIDE = """---
title: Tide tables
---

Tide tables tell when the water rises and falls at a harbour.

# Reading

## Columns

The first column names the harbour, the second the hour of high water.

## Corrections

Add an hour in summer, because the tables are printed in winter time.

# Printing

Print the tables on waterproof paper.
"""
FAQ = """# Questions

## Why is the tide late?

Strong wind from the land holds the water back.

## Which map do I need?

The one of the harbour office, scale 1 to 25000.
"""


class DocsWorld(World):
    """Skills in folders `lib-NAME`, references in folders `docs-NAME`."""

    def __init__(self, root: Path, *docs: str, skills: Sequence[str] = ("main",)) -> None:
        self.docs = list(docs or ("docs",))
        self.globs: dict[str, str] = {}
        super().__init__(root, *skills)
        self.sources = list(skills)
        for name in self.docs:
            self.folder(name).mkdir(parents=True, exist_ok=True)
        self.configure()

    def folder(self, name: str = "docs") -> Path:
        """The folder of a source of references."""
        return self.root / f"docs-{name}"

    def configure(self) -> None:
        """Write sources.toml as it is described here."""
        super().configure()
        blocks = [
            f'[[sources]]\nname = "{name}"\nkind = "references"\npath = {json.dumps(str(self.folder(name)))}\n'
            f"{self.globs.get(name, '')}\n"
            for name in self.docs
        ]
        self.config.write_text("\n".join([self.config.read_text(encoding="utf-8"), *blocks]), encoding="utf-8")

    def document(self, path: str, text: str | bytes = GUIDE, *, source: str = "docs") -> Path:
        """Write a document; returns its path."""
        place = self.folder(source) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return place

    def books(self) -> None:
        """The two documents above."""
        self.document("guides/tides.md", GUIDE)
        self.document("faq.md", FAQ)

    def references(self) -> References:
        """What answers from this world."""
        return References(ServeSettings(data_dir=self.data, embedder=EmbedderConfig(cache_dir=self.data / "models")))

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The rows of a JSON lines file of the current generation."""
        return [json.loads(line) for line in self.snapshot()[name].splitlines()]

    def sections(self) -> dict[str, dict[str, Any]]:
        """The published sections by ID."""
        return {row["id"]: row for row in self.lines("references-sections.jsonl")}

    @property
    def info(self) -> dict[str, Any]:
        """What the manifest of the current generation says of references."""
        return dict(json.loads(self.snapshot()["manifest.json"])["references"])
