# shellcheck shell=bash disable=SC2034 # read by provide.sh
# IWE: its command line tool and its server for agents, which read the catalog as people and agents will.

version=0.29.3
commands="iwe iwec"

build() {
  local cargo
  cargo=$(command -v cargo || printf '%s' "$HOME/.cargo/bin/cargo")
  [ -x "$cargo" ] || fail "cargo is missing, and IWE is compiled by it" "install Rust 1.82 or newer"
  # One build folder for both, since they share nearly all of what they are made of; and a build that is done sooner
  # rather than a program that is a little faster.
  CARGO_TARGET_DIR=$programs_cache/iwe-build CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    "$cargo" install --quiet --locked --root "$1" "iwe@$version" "iwec@$version"
  rm -rf -- "$programs_cache/iwe-build"
}
