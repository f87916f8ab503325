"""The passage step: what of a section's row is embedded, and its item of the lexical index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.steps import descriptor, terms
from serve.contract import Descriptor
from serve.references.contract import heading_path

PATH_CHARS = 200  # of the path of headings, its end: the own heading says most
_WORD = 40  # characters in which a word's end is looked for


def words(title: str, headings: Sequence[str], content: str, part: int) -> tuple[str, str]:
    """The path of headings on one line, the title first unless they begin with it, and the text below them without markup.

    content, part: of the row, with its heading when it is the first of its section.
    """
    body = content
    if part == 1 and headings:
        lines = content.split("\n", 2)
        body = "\n".join(lines[1 if lines[0].lstrip().startswith("#") else 2 :])
    return heading_path(title, headings), descriptor.clean(body)


def windows(title: str, headings: Sequence[str], content: str, part: int, size: int) -> list[str]:
    """What is embedded: the path of headings and the text, in stretches of about `size` characters; 0 for all in one.

    The vector of a row is the mean of theirs: a model that reads a hundred words would know nothing of what follows them.
    """
    path, body = words(title, headings, content, part)
    path = path[-PATH_CHARS:]
    if not body:
        return [path or " ".join(content.split())]
    return [". ".join(filter(None, (path, stretch))) for stretch in _stretches(body, size or len(body))]


def _stretches(text: str, size: int) -> Iterator[str]:
    """The text in stretches of about equal length, at most `size` but for the rest of a word."""
    count = -(-len(text) // size)
    start = 0
    for number in range(1, count + 1):
        end = len(text) * number // count
        space = text.find(" ", end, end + _WORD) if number < count else -1
        end = space if space > 0 else end
        yield text[start:end].strip()
        start = end


def item(path: str, title: str, headings: Sequence[str], content: str, part: int) -> bytes:
    """The row's item, as `serve.lanes.postings` lays it out. path: of the document, relative to its source.

    The fields: name is the heading, description the words of the path, headings are the title and the headings above,
    head and body the text.
    """
    _path, body = words(title, headings, content, part)
    own = headings[-1] if headings else title
    above = tuple(name for name in (title, *headings[:-1]) if name and name != own)
    return terms.make(
        Descriptor(
            name=own,
            purpose=path.rpartition(".")[0].replace("/", " "),
            triggers=(),
            limits=(),
            headings=tuple(dict.fromkeys(above)),
            head=body,
            short="",
        ),
        (),
    )
