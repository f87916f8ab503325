"""Report risky settings of pods and pod templates in the JSON that `kubectl get ... -o json` prints."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SEVERITIES = ("low", "medium", "high", "critical")
RUNTIME_SOCKETS = ("docker.sock", "containerd.sock", "crio.sock")
RISKY_CAPABILITIES = {"ALL", "SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE", "SYS_MODULE", "DAC_READ_SEARCH"}


def pod_specs(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (namespace/kind/name, pod spec) for every pod or workload in the document."""
    for item in document.get("items", [document]):
        meta = item.get("metadata", {})
        label = f"{meta.get('namespace', 'default')}/{item.get('kind', 'Pod')}/{meta.get('name', '?')}"
        spec = item.get("spec", {})
        if item.get("kind") == "CronJob":
            spec = spec.get("jobTemplate", {}).get("spec", {})
        yield label, spec.get("template", {}).get("spec", spec)


def pod_findings(spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Findings that belong to the pod as a whole."""
    for key, severity in (("hostPID", "critical"), ("hostNetwork", "high"), ("hostIPC", "high")):
        if spec.get(key):
            yield severity, f"{key} is on"
    for volume in spec.get("volumes", []):
        if "hostPath" in volume:
            path = volume["hostPath"].get("path", "?")
            worst = path == "/" or path.endswith(RUNTIME_SOCKETS)
            yield "critical" if worst else "high", f"hostPath {path}"
    if spec.get("automountServiceAccountToken") is not False:
        yield "low", "service account token is mounted by default"


def container_findings(container: dict[str, Any], pod_context: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Findings of one container; pod-level settings count where Kubernetes lets them."""
    name = container.get("name", "?")
    own = container.get("securityContext") or {}
    if own.get("privileged"):
        yield "critical", f"{name}: privileged"
    capabilities = own.get("capabilities") or {}
    for added in capabilities.get("add", []):
        yield "high" if added in RISKY_CAPABILITIES else "medium", f"{name}: adds capability {added}"
    user = own.get("runAsUser", pod_context.get("runAsUser"))
    non_root = own.get("runAsNonRoot", pod_context.get("runAsNonRoot"))
    if user == 0 or (not non_root and not user):
        yield "medium", f"{name}: may run as root"
    if own.get("allowPrivilegeEscalation") is not False:
        yield "medium", f"{name}: allowPrivilegeEscalation is not false"
    if not (own.get("seccompProfile") or pod_context.get("seccompProfile")):
        yield "medium", f"{name}: no seccomp profile"
    if "memory" not in container.get("resources", {}).get("limits", {}):
        yield "low", f"{name}: no memory limit"
    if "@sha256:" not in container.get("image", ""):
        yield "low", f"{name}: image is not pinned by digest ({container.get('image', '?')})"


def audit(document: dict[str, Any]) -> list[dict[str, str]]:
    """All findings, the worst first."""
    rows = []
    for label, spec in pod_specs(document):
        found = list(pod_findings(spec))
        for group in ("initContainers", "containers", "ephemeralContainers"):
            for container in spec.get(group) or []:
                found += container_findings(container, spec.get("securityContext") or {})
        rows += [{"severity": severity, "where": label, "what": what} for severity, what in found]
    return sorted(rows, key=lambda row: (-SEVERITIES.index(row["severity"]), row["where"], row["what"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="JSON of a pod, a workload or a List of them")
    parser.add_argument("--min-severity", choices=SEVERITIES, default="low")
    parser.add_argument("--json", action="store_true", help="print findings as JSON")
    args = parser.parse_args()
    floor = SEVERITIES.index(args.min_severity)
    rows = [r for r in audit(json.loads(args.file.read_text("utf-8"))) if SEVERITIES.index(r["severity"]) >= floor]
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            print(f"{row['severity']:<9}{row['where']}  {row['what']}")
        print(f"{len(rows)} findings", file=sys.stderr)
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
