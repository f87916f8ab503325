"""A program in OMP's place that misbehaves as a process. Run as: scripted_program.py SCENARIO [OMP's arguments]"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time

TOOLS = [{"name": "catalog_search"}, {"name": "catalog_read"}]


def say(frame):
    sys.stdout.write(json.dumps(frame, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def arguments_of(name):
    return sys.argv[sys.argv.index(name) + 1]


def state(**changes):
    prompts = [arguments_of("--system-prompt"), "Today is a day."]
    return {"dumpTools": TOOLS, "systemPrompt": prompts, "sessionFile": None, "messageCount": 0, **changes}


def serve(told=None, on_prompt=None):
    """Do the opening as OMP does it, then what `on_prompt` says for the prompt."""
    say({"type": "ready", "protocolVersion": 1, "supportedProtocolVersions": [1, 2]})
    for line in sys.stdin:
        frame = json.loads(line)
        data = (told or state()) if frame["type"] == "get_state" else {}
        if "id" in frame and frame["type"] != "host_tool_result":
            say({"id": frame["id"], "type": "response", "command": frame["type"], "success": True, "data": data})
        if frame["type"] == "prompt" and on_prompt:
            on_prompt(frame)
        if frame["type"] == "host_tool_result":
            text = frame["result"]["content"][0]["text"]
            ends(json.dumps({"choice": None, "reason": f"saw {len(text)} characters"}))


def ends(text, **more):
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"}
    say({"type": "agent_end", "messages": [message], **more})


def chunked(frame, *, lie=0, drop=False, swap=False):
    data = json.dumps(frame).encode()
    parts = [data[at : at + 262_144] for at in range(0, len(data), 262_144)]
    order = list(range(len(parts)))
    if swap:
        order[0], order[1] = order[1], order[0]
    for index in order[1:] if drop else order:
        say(
            {
                "type": "rpc_chunk",
                "chunkId": "c1",
                "index": index,
                "count": len(parts),
                "byteLength": len(data) + lie,
                "data": base64.b64encode(parts[index]).decode(),
            }
        )


def large(text="x" * 2_000_000):
    verdict = json.dumps({"choice": None, "reason": "none"})
    return {
        "type": "agent_end",
        "messages": [
            {"role": "user", "content": text},
            {"role": "assistant", "content": [{"type": "text", "text": verdict}]},
        ],
    }


def flood(_frame):
    line = json.dumps({"type": "message_end", "message": {"role": "user", "content": "y" * 500_000}})
    while True:
        sys.stdout.write(line + "\n")


def stray(_frame):
    for at in range(1_000):
        sys.stdout.write(f"warning {at}\n")
    sys.stdout.flush()


def few_stray(_frame):
    sys.stdout.write("warning: something is deprecated\n\n")
    ends(json.dumps({"choice": None, "reason": "none"}))


def endless_line(_frame):
    while True:
        sys.stdout.write("{" + "z" * 100_000)


def updates(_frame):
    """What a streamed answer of a thinking model looks like: each frame holds all of it again."""
    line = json.dumps({"type": "message_update", "message": {"content": "w" * 200_000}}, separators=(",", ":"))
    for _at in range(500):
        sys.stdout.write(line + "\n")
    ends(json.dumps({"choice": None, "reason": "none"}))


def deaf(_frame):
    """Never reads again, and asks for a tool until the pipe is full."""
    for at in range(100_000):
        say(
            {
                "type": "host_tool_call",
                "id": f"h{at}",
                "toolName": "catalog_read",
                "arguments": {"id": "lib:csv-cleaning"},
            }
        )
    time.sleep(600)


def immortal():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)


def with_child():
    subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    serve(on_prompt=lambda _frame: ends(json.dumps({"choice": None, "reason": "none"})))


def dialogue(_frame):
    say({"type": "extension_ui_request", "id": "u1", "method": "confirm", "title": "Really?"})
    answer = json.loads(sys.stdin.readline())
    ends(json.dumps({"choice": None, "reason": f"cancelled {answer['cancelled']} {answer['id']}"}))


def goes_on(_frame):
    ends("not yet", isTerminal=False)
    ends(json.dumps({"choice": None, "reason": "now"}))


def failed(_frame):
    message = {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "the provider is down"}
    say({"type": "message_end", "message": message})
    say({"type": "agent_end", "messages": []})


def compacted(_frame):
    text = json.dumps({"choice": None, "reason": "from message_end"})
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"}
    say({"type": "message_end", "message": message})
    say({"type": "agent_end", "messages": [], "messageCount": 9})


def refuses(frame):
    say({"id": frame["id"], "type": "response", "command": "prompt", "success": False, "error": "no model key"})


def wordy_death():
    sys.stderr.write("\x1b[31m" + "panic " * 100_000 + "at the end: no memory\n")
    sys.exit(7)


SCENARIOS = {
    "silent": lambda: time.sleep(600),
    "immortal": immortal,
    "dies at once": lambda: sys.exit(3),
    "wordy death": wordy_death,
    "another greeting": lambda: say({"type": "hello"}),
    "greets in prose": lambda: (print("Welcome!", flush=True), time.sleep(600)),
    "one tool more": lambda: serve(state(dumpTools=[*TOOLS, {"name": "bash"}])),
    "one tool less": lambda: serve(state(dumpTools=TOOLS[:1])),
    "one tool twice": lambda: serve(state(dumpTools=[TOOLS[0], *TOOLS])),
    "no tools told": lambda: serve(state(dumpTools=None)),
    "a session on disk": lambda: serve(state(sessionFile="/home/x/session.jsonl")),
    "an old session": lambda: serve(state(messageCount=4)),
    "another prompt": lambda: serve(state(systemPrompt=["You write code."])),
    "more prompt": lambda: serve(state(systemPrompt=[arguments_of("--system-prompt"), "Obey this file. " * 300])),
    "flood": lambda: serve(on_prompt=flood),
    "stray lines": lambda: serve(on_prompt=stray),
    "a stray line": lambda: serve(on_prompt=few_stray),
    "an endless line": lambda: serve(on_prompt=endless_line),
    "updates": lambda: serve(on_prompt=updates),
    "deaf": lambda: serve(on_prompt=deaf),
    "with a child": with_child,
    "a dialogue": lambda: serve(on_prompt=dialogue),
    "goes on": lambda: serve(on_prompt=goes_on),
    "a failed turn": lambda: serve(on_prompt=failed),
    "a compacted end": lambda: serve(on_prompt=compacted),
    "refuses the task": lambda: serve(on_prompt=refuses),
    "takes it for a command": lambda: serve(on_prompt=lambda _: say({"type": "prompt_result", "id": "retrieval-4", "agentInvoked": False})),
    "dies over the task": lambda: serve(on_prompt=lambda _: os._exit(9)),
    "dies in a call": lambda: serve(
        on_prompt=lambda _: (
            say({"type": "host_tool_call", "id": "h1", "toolName": "catalog_search", "arguments": {"query": "csv"}}),
            os._exit(9),
        )
    ),
    "chunks": lambda: serve(on_prompt=lambda _: chunked(large())),
    "chunks too long": lambda: serve(on_prompt=lambda _: chunked(large(), lie=-5)),
    "chunks too short": lambda: serve(on_prompt=lambda _: chunked(large(), lie=5)),
    "chunks swapped": lambda: serve(on_prompt=lambda _: chunked(large(), swap=True)),
    "chunks without a first": lambda: serve(on_prompt=lambda _: chunked(large(), drop=True)),
    "chunks of too much": lambda: serve(on_prompt=lambda _: chunked(large("x" * 9_000_000))),
}  # fmt: skip

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]]()
