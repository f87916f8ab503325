# shellcheck shell=bash disable=SC2034 # read by provide.sh
# OMP, and the Bun it runs on.

version=18.2.3
commands="bun omp"

build() {
  npm_install "$1" bun@1.4.5 "@oh-my-pi/pi-coding-agent@$version"
}
