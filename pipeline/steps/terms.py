"""The terms step: one skill's item of the lexical index, its words hashed and counted by field."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from serve.contract import LEXICAL_FIELDS, Descriptor
from serve.lanes.postings import FIELDS, MAX_COUNT, pack_item
from serve.text import term_ids

HEAD_CHARS = 1_000  # carries most of what a body adds; what follows is the field "body"
MAX_TAGS = 64
MAX_TAG_CHARS = 100


def make(descriptor: Descriptor, tags: Sequence[str]) -> bytes:
    """The item of one skill, as `serve.lanes.postings` lays it out.

    Limits are left out: a skill must not be found by the words that say what it is not for.
    """
    texts = _texts(descriptor, tags)
    fields = [term_ids(texts[name]) for name in LEXICAL_FIELDS]
    lengths = [len(found) for found in fields]
    hashes = np.fromiter(chain.from_iterable(fields), dtype=np.uint64, count=sum(lengths))
    distinct, which = np.unique(hashes, return_inverse=True)
    cells = which * FIELDS + np.repeat(np.arange(FIELDS), lengths)
    counts = np.bincount(cells, minlength=len(distinct) * FIELDS)
    return pack_item(distinct, np.minimum(counts, MAX_COUNT).astype(np.uint8), lengths)


def _texts(descriptor: Descriptor, tags: Sequence[str]) -> dict[str, str]:
    """What each field of `LEXICAL_FIELDS` is made of."""
    cut = descriptor.head.rfind(" ", 0, HEAD_CHARS + 1) if len(descriptor.head) > HEAD_CHARS else -1
    cut = cut if cut > 0 else HEAD_CHARS  # a text without spaces is cut where it stands
    triggers = [trigger for trigger in descriptor.triggers if trigger not in descriptor.purpose]
    return {
        "name": descriptor.name,
        "description": descriptor.purpose,
        "triggers": "\n".join([*triggers, *(tag[:MAX_TAG_CHARS] for tag in tags[:MAX_TAGS])]),
        "headings": "\n".join(descriptor.headings),
        "head": descriptor.head[:cut],
        "body": descriptor.head[cut:],
    }
