"""The last message of a model: one JSON object, or no decision."""

from __future__ import annotations

import pytest

from serve.selection import verdict
from serve.selection.limits import ChoiceError


@pytest.mark.parametrize(
    "text",
    [
        '{"choice": "a:b", "reason": "r"}',
        '\n {"reason": "r", "choice": " a:b ", "confidence": 1}\n',
        '```json\n{"choice": "a:b", "reason": "r"}\n```',
        '```\n{"choice": "a:b", "reason": "r"}\n```',
        'I decided.\n```json\n{"choice": "a:b", "reason": "r"}\n```\nDone.',
        '<think>{"choice": "c:d"}</think>\n{"choice": "a:b", "reason": "r"}',
        '{"choice": "a\\u003ab", "reason": "r"}',
    ],
)
def test_these_choose(text):
    assert verdict.read(text) == verdict.Verdict("a:b", "r")


def test_null_chooses_none():
    assert verdict.read('{"choice": null}') == verdict.Verdict(None, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "a:b",
        '"a:b"',
        "null",
        '["a:b"]',
        '{"id": "a:b"}',
        '{"choice": 5}',
        '{"choice": true}',
        '{"choice": {"id": "a:b"}}',
        '{"choice": ""}',
        '{"choice": "a:b"} {"choice": "c:d"}',
        'Choose {"choice": "a:b"}',
        '{"choice": "a:b"} is my answer',
        '```json\n{"choice": "a:b"}\n```\n```json\n{"choice": "c:d"}\n```',
        '```json\n{"choice": "a:b"}\n```\nor {"choice": "c:d"}',
        '```json\n{"choice": "a:b"}',
        "{'choice': 'a:b'}",
        '{"choice": "a:b"',
        '{"choice": "\ud800"}',
        "[" * 10_000,
        '{"choice": "' + "a" * 30_000 + '"}',
    ],
)
def test_these_decide_nothing(text):
    with pytest.raises(ChoiceError) as caught:
        verdict.read(text)

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 250


def test_a_reason_is_one_short_line():
    said = verdict.read('{"choice": null, "reason": "a\\nb\\u001b[31m ' + "x" * 2_000 + '"}')

    assert len(said.reason) == verdict.REASON
    assert said.reason.startswith("a b[31m x")
