#!/usr/bin/env bash
# Probe for `git bisect run`: builds, then tests the current checkout.
#   BUILD_CMD  command that builds (default: none); failure means skip
#   TEST_CMD   command that succeeds on good commits (required)
#   REPEAT     how often the test must succeed to count as good (default 1)
#   LIMIT      seconds before one test counts as bad (default 300)
set -u

if [ "${1:-}" = "--help" ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0"
    exit 0
fi
if [ -z "${TEST_CMD:-}" ]; then
    echo "TEST_CMD is not set" >&2
    exit 255 # aborts the bisection: without a test every answer would be wrong
fi

if [ -n "${BUILD_CMD:-}" ] && ! bash -c "$BUILD_CMD"; then
    echo "cannot build $(git rev-parse --short HEAD), skipping" >&2
    exit 125
fi

# Not every system has `timeout`; without it a hanging test hangs the bisection.
limited() {
    if command -v timeout >/dev/null; then
        timeout "${LIMIT:-300}" "$@"
    else
        "$@"
    fi
}

for _ in $(seq "${REPEAT:-1}"); do
    limited bash -c "$TEST_CMD"
    status=$?
    if [ "$status" -eq 125 ]; then
        exit 125 # the test itself says that it cannot judge
    elif [ "$status" -ne 0 ]; then
        exit 1
    fi
done
exit 0
