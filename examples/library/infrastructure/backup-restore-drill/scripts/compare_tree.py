"""Write a manifest of a folder (path, size, SHA-256) or check a restored folder against one."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path


def digest(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            total.update(piece)
    return total.hexdigest()


def manifest(folder: Path) -> dict[str, list[str | int]]:
    """Relative path -> [size, digest] of every regular file; links are not followed."""
    entries: dict[str, list[str | int]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            entries[path.relative_to(folder).as_posix()] = [path.stat().st_size, digest(path)]
    return entries


def differences(wanted: dict[str, list[str | int]], held: dict[str, list[str | int]]) -> list[str]:
    lines = [f"missing  {name}" for name in sorted(wanted.keys() - held.keys())]
    lines += [f"changed  {name}" for name in sorted(wanted.keys() & held.keys()) if wanted[name] != held[name]]
    return lines + [f"extra    {name}" for name in sorted(held.keys() - wanted.keys())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("manifest", help="print the manifest of FOLDER")
    write.add_argument("folder", type=Path)
    check = commands.add_parser("check", help="compare FOLDER with a manifest")
    check.add_argument("folder", type=Path)
    check.add_argument("manifest", type=Path)
    args = parser.parse_args()
    if not args.folder.is_dir():
        parser.error(f"{args.folder} is not a folder")
    held = manifest(args.folder)
    if args.command == "manifest":
        print(json.dumps(held, indent=1))
        return 0
    lines = differences(json.loads(args.manifest.read_text("utf-8")), held)
    print("\n".join(lines) if lines else f"equal: {len(held)} files")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
