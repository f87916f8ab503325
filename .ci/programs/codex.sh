# shellcheck shell=bash disable=SC2034 # read by provide.sh
# Codex.

version=0.171.0
commands="codex"

build() {
  npm_install "$1" "@openai/codex@$version"
}
