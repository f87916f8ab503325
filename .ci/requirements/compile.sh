#!/usr/bin/env bash
# Pins every dependency of pyproject.toml, with hashes, for Python 3.11 to 3.13 on any platform.
#   compile.sh            keeps the versions already pinned where they still fit
#   compile.sh --upgrade  takes the newest that fit
# Three files, each a subset of the next, all with the same versions:
#   serve.txt  what answering needs
#   build.txt  and what building an index, the command line and an install from a checkout need
#   dev.txt    and what tests, linters and packaging need
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/../.."
here=.ci/requirements
# Neither index addresses nor local paths belong into a file that travels.
common=(--universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-package retrieval --quiet)

uv pip compile pyproject.toml --extra build --group dev "${common[@]}" "$@" --output-file "$here/dev.txt"
uv pip compile pyproject.toml --extra build --group backend "${common[@]}" \
  --constraint "$here/dev.txt" --output-file "$here/build.txt"
uv pip compile pyproject.toml "${common[@]}" --constraint "$here/dev.txt" --output-file "$here/serve.txt"
printf 'uv\n' | uv pip compile - "${common[@]}" "$@" --output-file "$here/uv.txt"
