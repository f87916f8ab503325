#!/usr/bin/env bash
# The watcher of this checkout as a service of yours: it keeps the index up to date by itself. Run it again after an update.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)

usage() {
  printf '%s\n' \
    "usage: ./install-watcher.sh [--dry-run] [OPTIONS]    install and start it, anew where it runs" \
    "       ./install-watcher.sh --uninstall [--dry-run]  stop and remove it" \
    "       ./install-watcher.sh --status                 show how it is" \
    "  --dry-run  show what would be done, and do nothing" \
    "  OPTIONS    of \`retrieval watch\`, such as --poll"
}

main() {
  local retrieval=$root/.venv/bin/retrieval action=--install argument
  for argument in "$@"; do
    case $argument in
      -h | --help) usage; exit 0 ;;
      --uninstall | --status) action="" ;;
    esac
  done
  if [ ! -x "$retrieval" ]; then
    printf 'error: there is no environment in %s\n  next: run %s/setup.sh\n' "$root/.venv" "$root" >&2
    exit 1
  fi
  # What setup.sh wrote, unless another configuration is named.
  if [ -z "${RETRIEVAL_CONFIG:-}" ] && [ -f "$root/sources.toml" ]; then
    export RETRIEVAL_CONFIG="$root/sources.toml"
  fi
  exec "$retrieval" watch ${action:+"$action"} "$@"
}

main "$@"
