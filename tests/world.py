"""A small world to build in: a library, a configuration and a data directory of its own, and builds that are counted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.engine import graph
from pipeline.engine.build import Build
from pipeline.engine.report import Report
from pipeline.settings import load_settings
from tests.support import ROOT

COMMAND = [sys.executable, "-c", "from pipeline.cli import main; main()"]
SUBJECTS = {
    "csv-cleaning": "Clean messy CSV files and spreadsheets. Use when a CSV has broken rows or mixed encodings.",
    "sql-tuning": "Tune slow SQL queries with indexes. Use when a database query takes too long.",
    "pod-audit": "Audit Kubernetes pod security. Use when checking a cluster's pods.",
    "release-notes": "Write release notes for software. Not for marketing copy.",
}


class World:
    """Everything below one temporary folder. Sources are folders `lib-NAME`; the order given is their precedence."""

    def __init__(self, root: Path, *sources: str) -> None:
        self.root = root
        self.data = root / "data"
        self.config = root / "sources.toml"
        self.taxonomy = root / "taxonomy.toml"
        self.overrides = root / "category-overrides.toml"
        self.extra: dict[str, str] = {}
        self.policy = "review"
        self.sources = list(sources or ("main",))
        root.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "taxonomy.toml", self.taxonomy)
        for name in self.sources:
            self.lib(name).mkdir(parents=True, exist_ok=True)
        self.configure()

    def lib(self, source: str) -> Path:
        """The folder of a source."""
        return self.root / f"lib-{source}"

    def configure(self) -> None:
        """Write sources.toml as it is described here."""
        lines = [f'[policy]\nuncategorized = "{self.policy}"\n']
        for name in self.sources:
            path = json.dumps(str(self.lib(name)))
            lines.append(
                f'[[sources]]\nname = "{name}"\nkind = "skills"\npath = {path}\nstate = "cold"\n{self.extra.get(name, "")}\n'
            )
        self.config.write_text("\n".join(lines), encoding="utf-8")

    def skill(
        self,
        folder: str,
        description: str = "",
        body: str = "",
        *,
        source: str = "main",
        files: Mapping[str, str] | None = None,
        name: str = "",
    ) -> Path:
        """Write a skill; returns the path of its SKILL.md."""
        path = self.lib(source) / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        title = name or folder.rpartition("/")[2]
        said = description or SUBJECTS.get(title, f"Query a database about {title}. Use when {title} comes up.")
        text = (
            body
            or f"# {title}\n\nSteps for {title} with an SQL database.\n\n"
            + f"Check {title} twice before you go on. " * 12
        )
        path.write_text(f"---\nname: {title}\ndescription: {said}\n---\n\n{text}\n", encoding="utf-8")
        for relative, content in (files or {}).items():
            target = path.parent / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, encoding="utf-8")
        return path

    def library(self, source: str = "main") -> None:
        """The four skills of SUBJECTS."""
        for name in SUBJECTS:
            self.skill(name, source=source, files={"notes.md": f"notes of {name}\n"} if name == "pod-audit" else None)

    def environment(self, **more: str) -> dict[str, str]:
        """The variables that make a process build here."""
        return {"RETRIEVAL_HOME": str(self.data), "RETRIEVAL_CONFIG": str(self.config), **more}

    def open(self, **more: str) -> Build:
        """A build of this world in this process."""
        environ = {**os.environ, **self.environment(**more)}
        return Build(load_settings(self.config, environ=environ, cwd=self.root))

    def build(self, **more: str) -> Report:
        """Build in this process; returns the account."""
        build = self.open(**more)
        try:
            graph.run(build)
        finally:
            build.close()
        return build.report

    def counts(self, **more: str) -> dict[str, tuple[int, int, int]]:
        """Build; per step that did anything (computed, written, removed)."""
        report = self.build(**more)
        return {
            name: (count.executed, count.written, count.removed)
            for name, count in report.steps.items()
            if name not in {"select", "publish"} and (count.executed or count.written or count.removed)
        }

    def run(
        self, *arguments: str, timeout: float = 120, stdin: str | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line in a process of its own."""
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.environment(**more)},
            input=stdin if stdin is not None else "",
            capture_output=True,
            check=False,
            encoding="utf-8",
            timeout=timeout,
        )

    def json(self, *arguments: str, code: int = 0, **more: str) -> Any:
        """Run a command with --json, insist on its exit code, and give its value back."""
        done = self.run(*arguments, "--json", **more)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    @property
    def generation(self) -> str:
        """The generation that readers use now; "" when there is none."""
        try:
            return str(json.loads((self.data / "snapshots" / "current.json").read_bytes())["generation"])
        except FileNotFoundError:
            return ""

    def snapshot(self) -> dict[str, bytes]:
        """All files of the current generation."""
        folder = self.data / "snapshots" / self.generation
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    def catalog(self) -> dict[str, bytes]:
        """All files of the catalog by relative path."""
        root = self.data / "catalog"
        return {
            path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
        }
