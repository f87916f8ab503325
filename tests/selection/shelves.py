"""A shelf in memory: skills that a test makes up, found by their words."""

from __future__ import annotations

import threading

from serve.errors import OperatorError
from serve.selection import Candidate, Page


class BookShelf:
    """Finds a skill when a word of the query stands in its name or description. `searched` and `read_ids` keep account."""

    def __init__(self, skills=None):
        self.skills = {} if skills is None else dict(skills)
        self.searched = []
        self.read_ids = []
        self.hold = threading.Event()
        self.hold.set()

    def add(self, skill_id, description="", body="", *, name="", near=()):
        self.skills[skill_id] = (
            name or skill_id.rpartition("/")[2],
            description,
            body or f"# {skill_id}\n\nSteps.\n",
            near,
        )
        return self

    def candidate(self, skill_id, at=1, score=0.9):
        name, description, _body, _near = self.skills[skill_id]
        return Candidate(
            id=skill_id,
            name=name,
            description=description,
            source=skill_id.partition(":")[0],
            state="cold",
            categories=("data",),
            score=score,
            ranks={"semantic": at, "lexical": at},
        )

    def candidates(self, *ids):
        return [self.candidate(skill_id, at) for at, skill_id in enumerate(ids or self.skills, start=1)]

    def search(self, query, limit):
        self.hold.wait()
        self.searched.append(query)
        words = query.lower().split()
        found = [
            skill_id
            for skill_id, (name, description, _body, _near) in self.skills.items()
            if any(word in f"{name} {description}".lower() for word in words)
        ]
        return self.candidates(*found)[:limit] if found else []

    def read(self, skill_id, offset=0, limit=12_000):
        self.hold.wait()
        if skill_id not in self.skills:
            raise OperatorError("there is no such skill here", where=skill_id)
        self.read_ids.append(skill_id)
        name, _description, body, near = self.skills[skill_id]
        return Page(
            id=skill_id,
            name=name,
            text=body[offset : offset + limit],
            offset=min(offset, len(body)),
            total=len(body),
            neighbours=tuple(near),
        )


def library():
    """A small shelf whose first skill is the right one for a request about CSV files."""
    return (
        BookShelf()
        .add("lib:csv-cleaning", "Clean messy CSV files. Use when a CSV has broken rows.", near=["lib:sql-tuning"])
        .add("lib:sql-tuning", "Tune slow SQL queries with indexes.")
        .add("lib:pod-audit", "Audit Kubernetes pod security.")
    )
