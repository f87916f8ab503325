#!/usr/bin/env bash
# From nothing but Python 3.11 and a package index to a first answer: makes .venv, writes the configuration files that
# are missing, builds the index and asks it something. Run it again at any time: it changes only what is missing or
# outdated, and never a file that you own.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=.ci/environment.sh
. "$root/.ci/environment.sh"

query="this test fails every now and then and I cannot tell why"

usage() {
  say "usage: ./setup.sh [--no-build]"
  say "  --no-build  stop after the environment: neither configuration nor index"
}

# write_missing FILE: standard input becomes that file, readable by its owner alone, unless there is one.
write_missing() {
  [ ! -e "$1" ] && [ ! -L "$1" ] || return 0
  (umask 077 && cat >"$1")
  say "wrote $1"
}

write_configuration() {
  write_missing sources.toml <sources.example.toml
  write_missing category-overrides.toml <<'EOF'
# Categories for single skills whose own files you do not want to touch: the skill's exact ID, then ids of taxonomy.toml.
# `retrieval status --review` lists the skills that wait for one.
[skills]
# "examples:development/flaky-test-hunt" = ["testing"]
EOF
  write_missing .env <<'EOF'
# Settings, one NAME=value a line; the environment wins. All of them: docs/configuration.md.
# RETRIEVAL_HOME=~/.local/share/retrieval
# RETRIEVAL_CHROMA_MODE=server
# RETRIEVAL_EMBEDDER=endpoint
# RETRIEVAL_EMBEDDING_URL=http://127.0.0.1:8080/v1
EOF
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
  write_configuration
  say "building the index"
  build_index
  say ""
  say "\$ .venv/bin/retrieval search \"$query\" --limit 3"
  "$root/.venv/bin/retrieval" search "$query" --limit 3
  next_steps
}

main "$@"
