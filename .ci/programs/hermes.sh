# shellcheck shell=bash disable=SC2034 # read by provide.sh
# Hermes Agent with its MCP part, in an environment of its own: it pins other versions of what Retrieval uses. `bin` has the
# command alone, so that the environment's `python` does not come before that of the tests.

version=0.19.0
commands="hermes"

build() {
  "$base" -m venv --without-pip "$1/venv"
  python=$1/venv/bin/python install "hermes-agent[mcp]==$version"
  mkdir -p -- "$1/bin"
  ln -s ../venv/bin/hermes "$1/bin/hermes"
}
