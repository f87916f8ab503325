"""Finds the line on which each key of a TOML document stands, which `tomllib` does not tell."""

from __future__ import annotations

import re

Address = tuple[str | int, ...]

DEEPEST = 8  # levels of arrays and inline tables that get addresses; nothing we read goes further down

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*+")
_SPACE = re.compile(r"[ \t]*+")
_NAME = re.compile(r'"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|[A-Za-z0-9_-]++')
_STRING = re.compile(
    r'"""(?:\\[\s\S]|"{1,2}(?!")|[^"\\])*+"{3,5}'
    r"|'''(?:'{1,2}(?!')|[^'])*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
)
_BARE = re.compile(r"[^,\]}\n#]++")


def line_numbers(text: str) -> dict[Address, int]:
    """The line (from 1) of each key, table and array element of a valid TOML document, by its address.

    `("sources", 1, "path")` is the key `path` of the second `[[sources]]`. Of an invalid document the part before the
    first thing that cannot be read is told.
    """
    walker = _Walker(text)
    walker.document()
    return walker.lines


class _Walker:
    """One pass over the text. Every method moves `at` behind what it has read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Address, int] = {}
        self._lengths: dict[Address, int] = {}  # arrays of tables: how many elements so far
        self._counted_to = 0
        self._line = 1

    def document(self) -> None:
        """Reads headers and `key = value` lines until the end."""
        table: Address = ()
        while self._blank():
            before = self.at
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table, 0)
            if self.at == before:
                return

    def _blank(self) -> bool:
        """Skips white space and comments; False at the end of the text."""
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at < len(self.text)

    def _note(self, address: Address, at: int) -> None:
        """Records the line of an offset. Offsets only grow, so that each character is counted once."""
        self._line += self.text.count("\n", self._counted_to, at)
        self._counted_to = at
        self.lines.setdefault(address, self._line)

    def _names(self) -> list[str]:
        """A key, dotted or not: `a."b c".d`."""
        names: list[str] = []
        while match := _NAME.match(self.text, self._space()):
            names.append(match[0][1:-1] if match[0][0] in "\"'" else match[0])
            self.at = match.end()
            if self._peek(self._space()) != ".":
                break
            self.at += 1
        return names

    def _space(self) -> int:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _peek(self, at: int) -> str:
        return self.text[at : at + 1]

    def _header(self) -> Address:
        start = self.at
        many = self.text.startswith("[[", start)
        self.at += 2 if many else 1
        address: Address = ()
        for name in self._names():
            address = (*self._last(address), name)
        self._space()
        self.at += 2 if many else 1
        if many:
            self._lengths[address] = self._lengths.get(address, 0) + 1
        address = self._last(address)
        self._note(address, start)
        return address

    def _last(self, address: Address) -> Address:
        """An array of tables stands for its newest element."""
        return (*address, self._lengths[address] - 1) if address in self._lengths else address

    def _pair(self, table: Address, depth: int) -> None:
        start = self.at
        names = self._names()
        if not names or self._peek(self._space()) != "=":
            self.at = start
            return
        address = table
        for name in names:
            address = (*address, name)
            self._note(address, start)
        self.at += 1
        self._space()
        self._value(address, depth)

    def _value(self, address: Address, depth: int) -> None:
        first = self._peek(self.at)
        if first == "[":
            self._items(address, depth, "]")
        elif first == "{":
            self._items(address, depth, "}")
        elif match := (_STRING if first in {'"', "'"} else _BARE).match(self.text, self.at):
            self.at = match.end()

    def _items(self, address: Address, depth: int, closing: str) -> None:
        """The inside of an array or of an inline table."""
        self.at += 1
        number = 0
        while self._blank() and self._peek(self.at) != closing:
            before = self.at
            if closing == "}":
                self._pair(address, depth + 1)
            else:
                inner = (*address, number) if depth < DEEPEST else address
                self._note(inner, self.at)
                self._value(inner, depth + 1)
                number += 1
            if self._blank() and self._peek(self.at) == ",":
                self.at += 1
            if self.at == before:
                return
        self.at += 1
