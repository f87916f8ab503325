"""What can be wrong with a file or folder of a source, in words: one place, so that all parts say it alike."""

from __future__ import annotations

import errno

from pipeline.model import Problem

_TEXTS = {
    "source_missing": ("the source's folder does not exist", "create it, or correct the source's path"),
    "not_a_folder": ("the source's path is not a folder", "correct the source's path"),
    "unreadable": ("cannot be read", "grant read permission, or exclude the folder"),
    "vanished": ("disappeared while the source was scanned", "build again; if it stays, look for what removes it"),
    "dangling_link": ("a link to something that does not exist", "restore the target, or remove the link"),
    "link_loop": ("a link that leads back to itself or to a folder above it", "remove the link"),
    "outside_link": (
        "a link that leaves the source, which is never followed",
        "copy the target, or add it as a source",
    ),
    "ignored_target": ("a link into a folder that is always left out", "copy the target to where it is not left out"),
    "not_a_file": ("named like a skill's file, but not a file", "rename it, or replace it by a file"),
    "too_large": ("larger than a skill's file may be", "shorten it, or move parts into files beside it"),
    "not_a_document": ("named like a Markdown file, but not a file", "rename it, or replace it by a file"),
    "document_too_large": ("larger than a reference may be", "split it, or exclude it"),
    "not_text": ("not text in UTF-8, UTF-16 or UTF-32", "save it as UTF-8, or exclude it"),
    "linked_document": (
        "a link to a file that is not indexed under its own name, and links are not followed",
        "replace the link by a copy, or name the target like a Markdown file",
    ),
    "path_too_long": ("its path is longer than the system allows", "move the source to a shorter path"),
    "bad_name": ("its name is not valid UTF-8, so that it cannot be referred to", "rename it"),
    "too_many_links": ("more links to folders of skills than are followed up", "remove links, or exclude the folders"),
}
_KINDS = {
    errno.ENOENT: "vanished",
    errno.ENOTDIR: "vanished",
    errno.ELOOP: "link_loop",
    errno.ENAMETOOLONG: "path_too_long",
}


def problem(kind: str, source: str, where: str, detail: str = "") -> Problem:
    """The problem of that kind at the path `where` in `source`. Bytes of a name that are no text are shown escaped."""
    what, next_step = _TEXTS[kind]
    shown = where.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return Problem(source=source, what=f"{what} ({detail})" if detail else what, where=shown, next=next_step, kind=kind)


def os_problem(source: str, where: str, error: OSError) -> Problem:
    """The problem that an operating system's error about `where` stands for."""
    kind = _KINDS.get(error.errno or 0, "unreadable")
    return problem(kind, source, where, (error.strerror or "").lower() if kind == "unreadable" else "")
