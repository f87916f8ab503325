"""Cuts a description into clauses: what a skill does, when to use it, when not to, in English and in CJK scripts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PURPOSE, TRIGGER, LIMIT = "purpose", "trigger", "limit"

# A full stop ends a sentence only before something that can begin one: "e.g. this" goes on.
_SENTENCE = re.compile(
    r"(?<=[.!?])['\")\]]*[ \t]+(?![a-z])|(?<=;)[ \t]+|(?<=[。！？；])['\"」』）]*[ \t]*|[\r\n]+[ \t]*(?:[-*•][ \t]+)?"
)

_WHEN = r"(?:when(?:ever)?|if|any ?time|in case|while|during|before|after|for|on|to|as soon as)"
_SKILL = r"(?:(?:this|the|that|it|me)(?: (?:skill|agent|command|tool|workflow|plugin|template|guide|reference))?|skill)"
_HOW = r"(?:proactively|automatically|immediately|especially|specifically|only|always|also|primarily|explicitly)"
_VERB = r"(?:use|invoke|activate|trigger|apply|load|call|consult|reach for|read|run|select|choose)"
_PLAIN_VERB = r"(?:use|invoke|activate|trigger)"  # the others need a "when": "run on clusters" is no trigger

# Where a trigger or limit begins inside a sentence. Lower case counts only after a pause, capitals anywhere.
_INSIDE = re.compile(
    rf"(?:(?<=[,;:(|])|(?<= [-–—])|(?<=[–—]))[ \t]*(?=(?:and |but |or )?(?:"
    rf"not (?:for|when|if|intended|suitable|meant|applicable)\b|(?:do not|don't|never) (?:use|invoke|trigger|activate|apply)\b"
    rf"|{_VERB}(?: {_SKILL})?(?: {_HOW})? (?:when(?:ever)?|if)\b|triggers? (?:on|when|with)\b))"
    rf"|[ \t](?=(?:NOT (?:for|FOR|when|WHEN|if|intended)|(?:Do NOT|Do not|DO NOT|Don't|Never|NEVER) (?:use|USE|invoke|trigger|activate|apply))\b)"
    rf"|[ \t](?=(?:Use|USE|Invoke|Activate|Trigger)(?: {_SKILL})?(?: {_HOW})? (?:when(?:ever)?|if|WHEN)\b)"
    rf"|[ \t](?=(?:Triggers?|TRIGGERS?|Trigger (?:keywords?|phrases?|words?|terms?))(?: on)?:)",
)

_LIMIT = re.compile(
    rf"[(]?(?:and |but |or |also )*(?:(?:this skill |it )?(?:is )?not (?:for|when|if|intended(?: for| to)?|suitable for|meant for|applicable(?: to| for)?)\b"
    rf"|(?:do not|don't|never|should not be|must not be)(?: be)? (?:use|used|invoke|trigger|triggered|activate|apply)\b(?: {_SKILL})?(?: {_WHEN})?"
    rf"|(?:does not|doesn't) (?:cover|handle|apply to|replace|support)\b|(?:skip|avoid)(?: {_SKILL})? (?:when|if|for|using)\b"
    rf"|(?:out of scope|exclusions?|anti-triggers?|limits?|limitations?|when not to use)(?= *[:：]))[ \t:：,]*",
    re.IGNORECASE,
)

_TRIGGER = re.compile(
    rf"[(]?(?:and |but |or |also |please |always |only |must |should |mandatory:? )*(?:"
    rf"{_PLAIN_VERB}(?: {_SKILL})?(?: {_HOW})*(?: {_WHEN})(?: this when)?\b"
    rf"|{_VERB}(?: {_SKILL})?(?: {_HOW})*(?: (?:when(?:ever)?|if))\b"
    rf"|(?:this skill |it |this )?(?:should|must|can|is|will)(?: {_HOW})?(?: be)? (?:used|invoked|triggered|activated|loaded|applied|consulted)(?: {_HOW})?(?: {_WHEN})\b"
    rf"|(?:this skill )?(?:activates?|triggers?|triggered|invoked?)(?: {_HOW})?(?: (?:on|for|with|when|by|if))\b(?: (?:requests?|tasks?|questions?|queries|prompts?|keywords?|phrases?|mentions?)\b)?(?: (?:involving|about|like|such as|of))?"
    rf"|(?:also )?(?:trigger(?:s|ed)?|activation)(?: (?:keywords?|phrases?|words?|terms?|conditions?|examples?))?(?: include)?(?= *[:：])"
    rf"|(?:key ?words?|when to use|use cases?|use)(?= *[:：])"
    rf"|(?:best|ideal|perfect|suitable|useful|great|good)(?: used)? (?:for|when|if)\b"
    rf"|when(?:ever)?(?= (?:the |a |an )?(?:users?|someone|you|your|people|asked|working|building|creating|writing|developers?)\b)"
    rf")[ \t:：,]*",
    re.IGNORECASE,
)

# What stands between a trigger word and the matter itself: who asks, and the verb of asking.
_ASKING = re.compile(
    r"(?:(?:the |an? |your )?(?:users?|someone|anyone|people|person|you|human|customer|practitioner|team|agent|claude|codex)[ \t]+)?"
    r"(?:explicitly |specifically |directly )?(?:is |are |has |have )?(?:ask(?:s|ed|ing)?|want(?:s|ed|ing)?|need(?:s|ed|ing)?|request(?:s|ed|ing)?"
    r"|mention(?:s|ed|ing)?|say(?:s|ing)?|would like|wish(?:es)?|looking|trying)\b[ \t]*"
    r"(?:(?:you |me |claude |help |assistance |guidance )*(?:to|for|about|with|in)\b[ \t]*)?(?:help (?:with|to|in)\b[ \t]*)?",
    re.IGNORECASE,
)
_WORKING_WITH = re.compile(r"working (?:with|on|in)\b[ \t]*", re.IGNORECASE)

_CJK_LIMIT = re.compile(
    "(?:不适用于|不適用於|不要用于|不要用於|不用于|请勿用于|請勿用於|不支持|禁止用于)[:：]?"
    "|(?:には|では)?(?:使用しない|使わない|対象外)(?:で?ください|こと)?|(?:사용하지 ?마|사용하지 ?않)[가-힣]*"
)
_CJK_TRIGGER_START = re.compile(
    "(?:适用于|適用於|适用场景|適用場景|使用场景|使用場景|何时使用|触发词|觸發詞|触发条件|触发|适合|當|当|トリガー|使用場面|트리거)[:：]?"
)
_CJK_TRIGGER_END = re.compile(
    "(?:(?:的?时候?|的?時候?)(?:，|,)?(?:请|請)?(?:使用|调用|調用|触发|觸發|激活|启用)(?:此|该|本|這個|这个)?(?:技能|skill)?"
    "|(?:時|とき|際|場合)(?:に(?:は)?|は)(?:必ず)?(?:使用|利用|活用|起動|発動|使う)(?:します|する|してください|すること)?"
    "|(?:때|경우)(?:에)? ?(?:사용|활용|실행)[가-힣]*)[。．.]?$"
)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def split(description: str) -> Iterator[tuple[str, str]]:
    """Pairs of kind and text, in order. Triggers and limits come without the words that only say that they are one."""
    for sentence in _SENTENCE.split(description):
        if sentence and not sentence.isspace():
            for piece in _INSIDE.split(sentence):
                if piece and not piece.isspace():
                    yield _classify(piece.strip())


def _classify(clause: str) -> tuple[str, str]:
    if limit := _LIMIT.match(clause):
        return LIMIT, clause[limit.end() :]
    if trigger := _TRIGGER.match(clause):
        return TRIGGER, _matter(clause[trigger.end() :])
    return _classify_cjk(clause) if _CJK.search(clause) else (PURPOSE, clause)


def _matter(clause: str) -> str:
    """A trigger's own content: "the user asks to merge files" gives "merge files"."""
    asking = _ASKING.match(clause)
    rest = clause[asking.end() :] if asking else clause
    working = _WORKING_WITH.match(rest)
    return rest[working.end() :] if working else rest


def _classify_cjk(clause: str) -> tuple[str, str]:
    if limit := _CJK_LIMIT.search(clause):
        return LIMIT, clause[: limit.start()] + clause[limit.end() :]
    start = _CJK_TRIGGER_START.match(clause)
    end = _CJK_TRIGGER_END.search(clause)
    if start or end:
        return TRIGGER, clause[start.end() if start else 0 : end.start() if end else len(clause)]
    return PURPOSE, clause
