# shellcheck shell=bash
# Installs the programs that the tests run for real, each of a fixed version into a folder of its own that is kept from
# run to run. Sourced, never run. The caller sets `root`, sources environment.sh and has called `prepare`.
#
# A file beside this one describes one program:
#   version           what is installed; part of the folder's name
#   commands          what must be in `bin` afterwards
#   build FOLDER      installs it there

programs_cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/retrieval-ci

# provide NAME: the program is installed and its commands are on PATH.
provide() {
  local name=$1 version="" commands="" home command
  # shellcheck source=/dev/null
  . "$root/.ci/programs/$name.sh"
  home=$programs_cache/$name-$version
  # The mark is written last: without it the folder is what an interrupted run left behind, whatever lies in it.
  if [ ! -f "$home/.installed" ]; then
    rm -rf -- "$home"
    mkdir -p -- "$home"
    build "$home"
    for command in $commands; do
      [ -x "$home/bin/$command" ] || fail "$name $version was installed without \`$command\`" "remove $home and run this again"
    done
    : >"$home/.installed"
  fi
  unset -f build
  export PATH="$home/bin:$PATH"
}

# npm_install FOLDER PACKAGE…: with npm, whose own configuration names the registry.
npm_install() {
  local folder=$1
  shift
  command -v npm >/dev/null 2>&1 || fail "npm is missing, and $* are installed by it" "install Node.js 20 or newer"
  npm install --global --prefix "$folder" --no-fund --no-audit --no-update-notifier --loglevel=error "$@" >/dev/null ||
    fail "npm could not install $*" "see the message above"
}
