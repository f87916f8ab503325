"""Look for guessed and sprayed passwords, password logins and root logins in an sshd log."""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

EVENT = re.compile(
    r"sshd(?:-session)?\[\d+\]: (?P<what>Failed|Accepted) (?P<how>[\w/-]+) "
    r"for (?:invalid user )?(?P<user>\S{0,64}) from (?P<address>[0-9a-fA-F.:]{3,45}) port"
)


@dataclass
class Address:
    """What one source address did, in log order."""

    failures: int = 0
    users: set[str] = field(default_factory=set)
    accepted: list[tuple[int, str, str, int]] = field(default_factory=list)  # line, user, method, failures before


def read(path: Path) -> dict[str, Address]:
    """Collect events per source address; lines of other programs are skipped."""
    seen: dict[str, Address] = defaultdict(Address)
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            event = EVENT.search(line)
            if not event:
                continue
            source = seen[event["address"]]
            if event["what"] == "Failed":
                source.failures += 1
                source.users.add(event["user"])
            else:
                source.accepted.append((number, event["user"], event["how"], source.failures))
    return seen


def findings(seen: dict[str, Address], failures: int, users: int) -> list[str]:
    """One line per finding, grouped by kind."""
    rows = []
    for address, source in sorted(seen.items()):
        for number, user, how, before in source.accepted:
            if before >= failures:
                rows.append(f"guessed   {address} {user}: login at line {number} after {before} failures")
            if how == "password":
                rows.append(f"password  {address} {user}: password login at line {number}")
            if user == "root":
                rows.append(f"root      {address}: direct root login at line {number}")
        if len(source.users) >= users:
            rows.append(f"sprayed   {address}: {len(source.users)} user names, {source.failures} failures")
    return sorted(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="auth.log, secure, or the output of journalctl -u ssh")
    parser.add_argument("--failures", type=int, default=5, help="failures before a login that make it suspicious")
    parser.add_argument("--users", type=int, default=4, help="user names from one address that make it a spray")
    args = parser.parse_args()
    rows = findings(read(args.file), args.failures, args.users)
    print("\n".join(rows) if rows else "nothing found")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
