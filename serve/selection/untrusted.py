"""Showing a model text that strangers wrote: cleaned, marked as data, and unable to close its own mark.

Nothing here understands the text. Whatever is shown to a model passes `Fence`; whatever a model said and a person or an agent
will read passes `one_line`.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence

MARK = "untrusted-data"

# Control and format characters, variation selectors, tags and surrogates: nobody sees them, and a model reads them all the
# same. They also split words that are looked for below, so they go first. Tabs and line feeds stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
_LINE_ENDS = re.compile("\r\n?|[\x85\u2028\u2029]")
# Words by which chat templates mark turns. A server that takes them out of content for real ones would end the data there.
_TURNS = re.compile(
    r"<(?=[|｜])|(?<=[|｜])>|\[(?=/?INST\]|(?:AVAILABLE_)?TOOLS?[_A-Z]*\]|SYSTEM_PROMPT\])|<(?=<SYS>|</SYS>)"
    r"|<(?=/?s>|(?:start|end)_of_turn>|/?(?:bos|eos|tool_call|tool_response|function_calls?|system|think)>)",
    re.IGNORECASE,
)
_MARKS = re.compile(r"untrusted[\s_\-\u2010-\u2015\u2212]*data", re.IGNORECASE)
# In a message that OMP takes for a person's own, "@path" reads a file, "^model" names a model, and "+5k" sets a budget.
_COMMANDING = str.maketrans({"@": "\\u0040", "^": "\\u005e", "+": "\\u002b"})


def clean(text: str) -> str:
    """The text without what cannot be seen, with line feeds as its only line ends."""
    return _UNSEEN.sub("", _LINE_ENDS.sub("\n", text))


def one_line(text: str, most: int) -> str:
    """The text on one line of at most `most` characters, fit for a terminal."""
    line = " ".join(clean(text[: 8 * most]).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


class Fence:
    """Marks text as data with a code that was not known to anybody when the text was written. One per choice."""

    def __init__(self) -> None:
        self.code = secrets.token_hex(8)

    def block(self, text: str) -> str:
        """The text between two marker lines that nothing in it can repeat."""
        return f'<{MARK} code="{self.code}">\n{self.defused(text)}\n</{MARK} code="{self.code}">'

    def rows(self, rows: Iterable[Mapping[str, str | Sequence[str]]]) -> str:
        """A block of JSON objects of texts and lists of texts, one a line."""
        return self.block("\n".join(json.dumps(_cleaned(row), ensure_ascii=False) for row in rows))

    def defused(self, text: str) -> str:
        """The text with everything broken up that could pass for a marker or a turn of the conversation."""
        seen = _MARKS.sub("untrusted data", clean(text))
        return _TURNS.sub(lambda found: f"{found[0]} " if found[0] != ">" else " >", seen).replace(self.code, "")


def inert(block: str) -> str:
    """A block of JSON rows without the characters that OMP acts upon in a message. JSON reads them back as they were."""
    return block.translate(_COMMANDING)


def _cleaned(row: Mapping[str, str | Sequence[str]]) -> dict[str, str | list[str]]:
    """JSON would write what cannot be seen as an escape, which `clean` does not recognise: it has to go before."""
    return {
        key: clean(value) if isinstance(value, str) else [clean(item) for item in value] for key, value in row.items()
    }
