"""Stands in for `iwec` and behaves as plan.json beside it says for this life; writes down what it is sent.

well: answers. slow: answers searches when it is asked for the document of pod-audit. mute: begins, then says nothing more.
silent: says nothing at all. garbage: no JSON. list: JSON of another form. endless: a line without an end. exits: complains and
ends. refuses: an error to the handshake. other: results without content. failing: an error to each call. flagged: isError.
chatty: requests of its own around each answer. ends: ends in the middle of an answer.
"""

import json
import os
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
plan = json.loads((here / "plan.json").read_text(encoding="utf-8"))
life = len(list(here.glob("life-*")))
(here / f"life-{life}").write_text(json.dumps(dict(os.environ)), encoding="utf-8")
mode = plan["lives"][min(life, len(plan["lives"]) - 1)]
counts = plan["counts"] or [sum(path.is_file() for path in pathlib.Path.cwd().glob("skills/*/*.md"))]
received = (here / "received").open("a", encoding="utf-8")
held = []


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def raw(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def documents(arguments):
    if arguments.get("limit") == 1:
        count = counts[min(life, len(counts) - 1)]
        return [json.dumps([{"key": "index"}]), json.dumps({"truncated": True, "matched": count + 1})]
    marked = [f"skills/main/{arguments['lexical']}-0000000000000000"] if "lexical" in arguments else []
    return [json.dumps([{"key": key} for key in marked + plan["keys"]])]


def answer(message):
    texts = documents(message["params"]["arguments"])
    content = [{"type": "text", "text": text} for text in texts]
    say({"jsonrpc": "2.0", "id": message["id"], "result": {"content": content, "isError": mode == "flagged"}})


def called(message):
    if mode == "mute":
        return
    if mode == "other":
        say({"jsonrpc": "2.0", "id": message["id"], "result": {"pages": 3}})
    elif mode == "failing":
        say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no such thing"}})
    elif mode == "ends":
        raw('{"jsonrpc": "2.0", "id"')
        sys.exit(0)
    elif mode == "slow" and "lexical" in message["params"]["arguments"]:
        held.append(message)
    else:
        if "pod-audit" in str(message["params"]["arguments"].get("keys")):
            for one in held:
                answer(one)
        if mode == "chatty":
            say({"jsonrpc": "2.0", "id": 77, "method": "ping"})
            say({"jsonrpc": "2.0", "id": 78, "method": "roots/list"})
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
            say({"jsonrpc": "2.0", "id": 99_999, "result": {}})
        answer(message)


if mode == "exits":
    sys.stderr.write("2026 INFO all is well\nError: no \x1b[31mconfiguration\n")
    sys.exit(3)
if mode == "garbage":
    raw("Hello!\n")
if mode == "list":
    raw("[1, 2]\n")
if mode == "endless":
    while True:
        raw("x" * 65536)
for line in sys.stdin:
    message = json.loads(line)
    received.write(line)
    received.flush()
    if mode == "silent":
        continue
    if message.get("method") == "initialize" and mode == "refuses":
        say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": 1, "message": "not today"}})
    elif message.get("method") == "initialize":
        say({"jsonrpc": "2.0", "id": message["id"], "result": {"serverInfo": {"name": "odd", "version": "1"}}})
    elif message.get("method") == "tools/call":
        called(message)
