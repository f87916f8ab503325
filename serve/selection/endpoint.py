"""The selector `endpoint`: a chat model behind an OpenAI-compatible URL makes the choice by calling the scout's two tools."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

import msgspec

from serve.selection import Candidate, Choice, Shelf
from serve.selection.chat import Endpoint
from serve.selection.limits import ChoiceError, Limits
from serve.selection.scout import MAX_CALLS, REFUSED_CALLS, SYSTEM_PROMPT, TOOLS, Scout
from serve.settings import ScoutSettings

MAX_TURNS = MAX_CALLS + REFUSED_CALLS + 1
KEPT_TEXT = 20_000  # characters of a turn that the model sees again
KEPT_ARGUMENTS = 4_000


class EndpointSelector:
    """Chooses by a chat model. Keeps nothing running between choices."""

    name = "endpoint"

    def __init__(self, settings: ScoutSettings) -> None:
        self._settings = settings
        self._closed = Event()

    def choose(
        self, query: str, candidates: list[Candidate], shelf: Shelf, *, deadline: float, cancelled: Event
    ) -> Choice:
        """The choice for a query. Whatever goes wrong is a choice of nothing, with the reason."""
        begun = time.monotonic()
        limits = Limits(deadline, (cancelled, "the request was cancelled"), (self._closed, "the selector was closed"))
        scout = Scout(query, candidates, shelf, limits)
        try:
            choice = scout.decide(self._text(scout, limits), self.name)
        except ChoiceError as error:
            choice = scout.failed(error, self.name)
        return msgspec.structs.replace(choice, milliseconds=round((time.monotonic() - begun) * 1000, 2))

    def close(self) -> None:
        """Let choices that are being made end. May be called twice."""
        self._closed.set()

    def _text(self, scout: Scout, limits: Limits) -> str:
        """The model's last message: the first one that calls no tool."""
        settings = self._settings
        if not settings.url or not settings.model:
            raise ChoiceError("no model is set up: the endpoint needs a URL and the name of a model")
        endpoint = Endpoint(settings.url, settings.api_key)
        tools = [{"type": "function", "function": tool} for tool in TOOLS]
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM_PROMPT},
            {"role": "user", "content": scout.first_message()},
        ]
        for _turn in range(MAX_TURNS):
            body = {"model": settings.model, "messages": messages, "tools": tools, "stream": False}
            message = _message(endpoint.ask(body, limits))
            calls = _calls(message)
            text = _content(message)
            if not calls:
                return text
            messages.append({"role": "assistant", "content": text[:KEPT_TEXT] or None, "tool_calls": calls})
            for call in calls:
                result = scout.call(call["function"]["name"], _arguments(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result.text})
        raise ChoiceError(f"the model did not decide within {MAX_TURNS} turns")


def _message(answer: dict[str, Any]) -> dict[str, Any]:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        raise ChoiceError("the model's endpoint answered without a message")
    return message


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of a message, as they are sent back: with an ID each, and no longer than any sensible call."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return []
    kept: dict[str, dict[str, Any]] = {}
    for at, call in enumerate(calls[: MAX_CALLS + REFUSED_CALLS + 1]):
        given = call if isinstance(call, dict) else {}
        wanted = given["function"] if isinstance(given.get("function"), dict) else {}
        number = given.get("id")
        if not isinstance(number, str) or not number or number in kept:
            number = f"unnamed-{at}"
        arguments = wanted.get("arguments")
        if not isinstance(arguments, str):  # some servers send the object itself
            arguments = msgspec.json.encode(arguments).decode()
        function = {"name": str(wanted.get("name"))[:100], "arguments": arguments[:KEPT_ARGUMENTS]}
        kept[number] = {"id": number, "type": "function", "function": function}
    return list(kept.values())


def _arguments(text: str) -> object:
    """The arguments of a call, None when they are no JSON."""
    try:
        return msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in {"text", None}]
    return "".join(text for text in texts if isinstance(text, str))
