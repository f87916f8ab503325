#!/bin/sh
# The MCP server of this checkout on standard input and output, for harnesses to start from whatever folder they work in.
# Arguments go to `python -m serve`; see --help.
set -eu
self=$0
while [ -L "$self" ]; do
  target=$(readlink -- "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname -- "$self")/$target ;;
  esac
done
root=$(CDPATH='' cd -- "$(dirname -- "$self")" && pwd -P)

python=$root/.venv/bin/python
if [ ! -x "$python" ]; then
  printf 'error: there is no environment in %s\n  next: run %s/setup.sh\n' "$root/.venv" "$root" >&2
  exit 1
fi
# What setup.sh wrote, unless the harness names another configuration.
if [ -z "${RETRIEVAL_CONFIG:-}" ] && [ -f "$root/sources.toml" ]; then
  export RETRIEVAL_CONFIG="$root/sources.toml"
fi
# Isolated: neither the current folder nor Python's variables of the project that the harness works in decide what is run.
exec "$python" -I -m serve "$@"
