#!/usr/bin/env bash
# The test suite. What this machine lacks is skipped by name; with CI=true a missing part is a failure.
# Arguments go to pytest: ./test.sh tests/steps -x
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=.ci/environment.sh
. "$root/.ci/environment.sh"

main() {
  prepare dev
  cd "$root"
  exec "$python" -m pytest -m "not long" "$@"
}

main "$@"
