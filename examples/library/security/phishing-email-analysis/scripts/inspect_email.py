"""Print the facts of a raw e-mail that matter for a phishing verdict. Works offline and opens nothing."""

from __future__ import annotations

import argparse
import re
import sys
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parseaddr
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

RISKY = {".html", ".htm", ".iso", ".img", ".lnk", ".js", ".vbs", ".hta", ".exe", ".scr", ".docm", ".xlsm", ".one"}
HOST_IN_TEXT = re.compile(r"(?:https?://)?((?:[a-z0-9-]{1,63}\.){1,6}[a-z]{2,24})", re.IGNORECASE)


class Links(HTMLParser):
    """Collect (href, visible text) pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[str, str]] = []
        self._href: str | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._href = dict(attrs).get("href")
            self._text = []

    def handle_data(self, data: str) -> None:
        if self._href is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._href is not None:
            self.pairs.append((self._href, "".join(self._text).strip()))
            self._href = None


def domain(header: str | None) -> str:
    """The domain of the address in a header, lower case, or ""."""
    return parseaddr(str(header or ""))[1].rpartition("@")[2].lower()


def identity_lines(message: EmailMessage) -> list[str]:
    names = ("From", "Reply-To", "Return-Path")
    lines = [f"{name}: {message[name]}" for name in names if message[name]]
    sender = domain(message["From"])
    for name in names[1:]:
        other = domain(message[name])
        if other and other != sender:
            lines.append(f"! {name} domain {other} differs from From domain {sender}")
    return lines


def authentication_lines(message: EmailMessage) -> list[str]:
    lines = []
    for value in message.get_all("Authentication-Results", []):
        server, _, rest = str(value).partition(";")
        verdicts = re.findall(r"\b(spf|dkim|dmarc)=(\w+)", rest)
        lines.append(f"by {server.strip()}: " + ", ".join(f"{k}={v}" for k, v in verdicts))
        lines += [f"! {kind} {verdict}" for kind, verdict in verdicts if verdict not in ("pass", "none")]
    return lines or ["! no Authentication-Results header"]


def link_lines(message: EmailMessage) -> list[str]:
    lines = []
    for part in message.walk():
        if part.get_content_type() != "text/html" or part.get_content_disposition() == "attachment":
            continue
        links = Links()
        links.feed(part.get_content())
        for href, text in links.pairs:
            target = (urlsplit(href).hostname or "").lower()
            lines.append(f"{text[:60]!r} -> {href[:200]}")
            shown = HOST_IN_TEXT.search(text)
            if shown and target and shown.group(1).lower() != target:
                lines.append(f"! text shows {shown.group(1).lower()} but the target is {target}")
            if "xn--" in target:
                lines.append(f"! punycode host {target}")
    return lines


def attachment_lines(message: EmailMessage) -> list[str]:
    lines = []
    for part in message.iter_attachments():
        name = part.get_filename() or "(no name)"
        lines.append(f"{name} ({part.get_content_type()})")
        if Path(name).suffix.lower() in RISKY:
            lines.append(f"! {name} can run code or imitate a login page")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="raw message (.eml)")
    args = parser.parse_args()
    message = message_from_bytes(args.file.read_bytes(), policy=policy.default)
    hops = [" ".join(str(hop).split())[:160] for hop in reversed(message.get_all("Received", []))]
    sections = {
        "identities": identity_lines(message),
        "authentication": authentication_lines(message),
        "relay path, oldest first": hops,
        "links": link_lines(message),
        "attachments": attachment_lines(message),
    }
    warnings = 0
    for title, lines in sections.items():
        print(f"== {title}")
        for line in lines or ["none"]:
            print(f"  {line}")
            warnings += line.startswith("!")
    print(f"{warnings} warnings")
    return 1 if warnings else 0


if __name__ == "__main__":
    sys.exit(main())
