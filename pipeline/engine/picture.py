"""The task graph as a picture: each task, what it needs, and whether it is current. doit itself is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from doit.cmd_base import ModuleTaskLoader
from doit.control import TaskControl
from doit.dependency import Dependency, JsonDB
from doit.task import Task

from pipeline.engine.build import Build
from pipeline.engine.graph import load_dodo


class Node(NamedTuple):
    """A task. state: current, stale (it would run) or waiting (an input does not exist yet)."""

    name: str
    doc: str
    needs: tuple[str, ...]
    state: str


def states(build: Build) -> list[Node]:
    """All tasks in the order of dodo.py with their state now. Runs nothing."""
    namespace = load_dodo(build)
    config = namespace["DOIT_CONFIG"]
    loader = ModuleTaskLoader(namespace)
    loader.setup({})
    loader.config = config
    tasks = loader.load_tasks(cmd=_NoCommand(), pos_args=[])
    control = TaskControl(tasks)
    manager = Dependency(JsonDB, config["dep_file"], config["check_file_uptodate"])
    # It is not closed: closing is what writes, and looking leaves no trace.
    return [_node(task, control.tasks, manager) for task in control.tasks.values() if not task.has_subtask]


class _NoCommand:
    """What the loader wants to know of the command line: there is none."""

    execute_tasks = False
    name = "list"

    @staticmethod
    def get_options() -> list[object]:
        """No options."""
        return []


def _node(task: Task, tasks: dict[str, Task], manager: Dependency) -> Node:
    needs = tuple(sorted(name for name in task.task_dep if not tasks[name].has_subtask))
    status = manager.get_status(task, tasks).status
    doc = tasks[task.name.partition(":")[0]].doc or ""
    return Node(task.name, doc, needs, {"up-to-date": "current", "run": "stale"}.get(status, "waiting"))


def text(nodes: Sequence[Node]) -> str:
    """One line a task, grouped by step, with what it needs."""
    lines = []
    step = ""
    for node in nodes:
        mine = node.name.partition(":")[0]
        if mine != step:
            step = mine
            lines.append(f"{step}: {node.doc}")
        needs = f" ← {', '.join(node.needs[:6])}{' …' if len(node.needs) > 6 else ''}" if node.needs else ""
        lines.append(f"  {_MARK[node.state]} {node.name} ({node.state}){needs}")
    return "\n".join(lines)


def dot(nodes: Sequence[Node]) -> str:
    """The graph in Graphviz' language."""
    lines = ["digraph build {", "  rankdir=LR;", '  node [shape=box, style=filled, fontname="sans-serif"];']
    for node in nodes:
        lines.append(f'  "{node.name}" [fillcolor="{_COLOUR[node.state]}", tooltip="{node.doc}"];')
        lines += [f'  "{need}" -> "{node.name}";' for need in node.needs]
    return "\n".join([*lines, "}"])


_MARK = {"current": "✓", "stale": "•", "waiting": "…"}
_COLOUR = {"current": "#d5f0d5", "stale": "#ffe9b3", "waiting": "#e6e6e6"}
