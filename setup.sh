#!/usr/bin/env bash
# From nothing but Python 3.11 and a package index to a first answer: makes .venv, writes sources.toml if there is
# none, builds the index and asks it something. Run it again at any time: it changes only what is missing or outdated,
# and never a file that you own.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=.ci/environment.sh
. "$root/.ci/environment.sh"

query="this test fails every now and then and I cannot tell why"

usage() {
  say "usage: ./setup.sh [--no-build]"
  say "  --no-build  stop after the environment: neither configuration nor index"
}

# build: 3 means "done, and something is worth a look", which is no reason to stop here.
build_index() {
  local code=0
  "$root/.venv/bin/retrieval" build || code=$?
  case $code in
    0) ;;
    3) say "The index is complete but for the problems above: .venv/bin/retrieval status lists them." ;;
    *) exit "$code" ;;
  esac
}

next_steps() {
  cat <<EOF

Ready. What you can do next, from $root:
  .venv/bin/retrieval search "..."    ask it something else
  .venv/bin/retrieval status          what is indexed, and what is not and why
  \${EDITOR:-vi} sources.toml          add your own folders of skills, then: .venv/bin/retrieval build
  ./test.sh                           run the tests
EOF
}

main() {
  local build=yes
  while [ $# -gt 0 ]; do
    case $1 in
      --no-build) build=no ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; exit 2 ;;
    esac
    shift
  done
  cd "$root"

  say "preparing .venv"
  prepare build
  [ "$build" = yes ] || exit 0
  if [ ! -e sources.toml ]; then
    cp sources.example.toml sources.toml
    say "wrote sources.toml: the example library is its first source"
  fi
  say "building the index"
  build_index
  say ""
  say "\$ .venv/bin/retrieval search \"$query\" --limit 3"
  "$root/.venv/bin/retrieval" search "$query" --limit 3
  next_steps
}

main "$@"
