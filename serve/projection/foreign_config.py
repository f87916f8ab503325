"""Which further folders of skills a harness is told of in its YAML settings, without a YAML parser.

Answering brings none along. The three ways in which people write a list of paths are understood; of anything else no folder is
known, and a copy may then get a name that one of these folders has as well.
"""

from __future__ import annotations

import os
import re

_BYTES = 1 << 20
_known: dict[str, tuple[tuple[int, int, int], list[str]]] = {}


def folders(path: str, field: str, base: str) -> list[str]:
    """The paths that the field of that name lists in a settings file, absolute. base: what relative ones start from."""
    try:
        stat = os.stat(path)
        times = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known = _known.get(path)
        if known is None or known[0] != times:
            with open(path, encoding="utf-8", errors="replace") as file:
                known = _known[path] = (times, paths(file.read(_BYTES), field))
    except OSError:
        return []
    found = (os.path.expandvars(os.path.expanduser(name)) for name in known[1])
    return [os.path.abspath(os.path.join(base, name)) for name in found]


def paths(text: str, field: str) -> list[str]:
    """The texts that the field holds: one on its line, several in brackets, or one a line after dashes."""
    begun = re.search(rf"^([ \t]*){re.escape(field)}[ \t]*:[ \t]*(.*)$", text, re.MULTILINE)
    if begun is None:
        return []
    value = _bare(begun[2])
    if value.startswith("["):
        inside = text[begun.start(2) + 1 :].partition("]")[0]
        return [name for item in inside.split(",") if (name := _bare(item))]
    if value:
        return [value]
    found = []
    for line in text[begun.end() :].split("\n")[1:]:
        item = re.match(rf"^{begun[1]}[ \t]*-[ \t]+(.+)$", line.rstrip("\r"))
        if item is not None:
            found.append(_bare(item[1]))
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return [name for name in found if name]


def _bare(value: str) -> str:
    """A scalar without comment, white space and quotes."""
    value = value.strip()
    quoted = re.match(r"(['\"])(.*?)\1", value)
    return quoted[2] if quoted else re.sub(r"(^|[ \t]+)#.*$", "", value).strip()
