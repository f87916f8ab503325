# shellcheck shell=bash disable=SC2034 # read by provide.sh
# The MCP Inspector, whose command line is a client of another make than the server's own library.

version=2.12.0
commands="mcp-inspector"

build() {
  npm_install "$1" "@modelcontextprotocol/inspector@$version"
}
