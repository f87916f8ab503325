"""Summarise `terraform show -json` output: deletions and replacements first, attribute names only, never values."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

# Endings of resource types: a bucket holds data, a bucket's policy does not.
HOLDS_DATA = (
    "db_instance",
    "rds_cluster",
    "dynamodb_table",
    "s3_bucket",
    "storage_bucket",
    "storage_account",
    "sql_database",
    "sql_database_instance",
    "efs_file_system",
    "ebs_volume",
    "compute_disk",
    "managed_disk",
    "kms_key",
    "elasticache_cluster",
    "elasticache_replication_group",
    "redis_instance",
    "redis_cache",
    "opensearch_domain",
    "secretsmanager_secret",
)
ORDER = ("delete", "replace", "forget", "update", "create")


def action_of(change: dict[str, Any]) -> str:
    """Fold Terraform's list of actions into one word."""
    actions = change.get("actions", [])
    if "delete" in actions and "create" in actions:
        return "replace"
    return actions[0] if actions else "no-op"


def changed_keys(change: dict[str, Any]) -> list[str]:
    """Top-level attributes that differ or will only be known after apply."""
    before, after = change.get("before") or {}, change.get("after") or {}
    keys = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    unknown = change.get("after_unknown")
    return sorted(keys | {key for key, value in unknown.items() if value} if isinstance(unknown, dict) else keys)


def rows_of(plan: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for resource in plan.get("resource_changes", []):
        change = resource["change"]
        action = action_of(change)
        if action not in ORDER:
            continue
        forced = sorted({str(path[0]) for path in change.get("replace_paths", []) if path})
        rows.append(
            {
                "action": action,
                "address": resource["address"],
                "keys": forced if action == "replace" else changed_keys(change) if action == "update" else [],
                "data": resource.get("type", "").endswith(HOLDS_DATA),
            }
        )
    return sorted(rows, key=lambda row: (ORDER.index(row["action"]), not row["data"], row["address"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="output of terraform show -json PLAN")
    args = parser.parse_args()
    rows = rows_of(json.loads(args.file.read_text("utf-8")))
    for row in rows:
        mark = " [HOLDS DATA]" if row["data"] and row["action"] in ("delete", "replace") else ""
        why = f"  ({', '.join(row['keys'])})" if row["keys"] else ""
        print(f"{row['action']:<8}{row['address']}{mark}{why}")
    counts = {action: sum(row["action"] == action for row in rows) for action in ORDER}
    print(", ".join(f"{count} {action}" for action, count in counts.items() if count) or "no changes")
    return 1 if any(row["data"] and row["action"] in ("delete", "replace") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
