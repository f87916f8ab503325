"""Where the tokens of a text stand, as far as no embedder's own tokenizer is at hand: by a rule that comes near to most.

A token is at most six letters of a word, at most three digits, a character of a script without spaces, or any other sign.
"""

from __future__ import annotations

import re

RULE = "rule-1"  # part of every key of what was cut by it

_TOKEN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f]"
    r"|[^\W\d_]{1,6}|\d{1,3}|\S"
)


def spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each token, in characters."""
    return [found.span() for found in _TOKEN.finditer(text)]
