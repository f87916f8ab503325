# shellcheck shell=bash disable=SC2034 # read by provide.sh
# Claude Code.

version=2.1.197
commands="claude"

build() {
  npm_install "$1" "@anthropic-ai/claude-code@$version"
}
