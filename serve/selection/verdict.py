"""Reading a model's last message: one JSON object with a choice and a reason, or no decision."""

from __future__ import annotations

import msgspec

from serve.selection.limits import ChoiceError
from serve.selection.untrusted import one_line

LONGEST = 20_000  # characters; a verdict has a few hundred
SHOWN = 120
REASON = 500


class Verdict(msgspec.Struct, frozen=True):
    """choice: an ID as the model wrote it, None when no skill fits. reason: on one line."""

    choice: str | None
    reason: str


def read(text: str) -> Verdict:
    """The verdict in a message. A code fence around the object and a passage of thought before it are passed over.

    Raises ChoiceError for anything else.
    """
    if not text.strip():
        raise ChoiceError("the model's last message is empty")
    if len(text) > LONGEST:
        raise ChoiceError(f"the model's last message has {len(text)} characters instead of a short JSON object")
    try:
        value = msgspec.json.decode(_bare(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise _unfit("is no JSON object", text) from None
    if not isinstance(value, dict):
        raise _unfit("is no JSON object", text)
    if "choice" not in value:
        raise _unfit("has no `choice`", text)
    choice, reason = value["choice"], value.get("reason")
    if choice is not None and not (isinstance(choice, str) and choice.strip()):
        raise _unfit("has a `choice` that is neither an ID nor null", text)
    said = one_line(reason, REASON) if isinstance(reason, str) else ""
    return Verdict(choice if choice is None else choice.strip(), said)


def _bare(text: str) -> str:
    """The text without a leading passage of thought and without the one code fence that holds the object."""
    bare = text.rpartition("</think>")[2].strip()
    if bare.startswith("{"):
        return bare
    head, fence, rest = bare.partition("```")
    inside, closing, tail = rest.partition("```")
    if fence and closing and "```" not in tail and "{" not in head and "{" not in tail:
        return inside.removeprefix("json").removeprefix("JSON").strip()
    return bare


def _unfit(what: str, text: str) -> ChoiceError:
    return ChoiceError(f"the model's last message {what}: {one_line(text, SHOWN)}")
