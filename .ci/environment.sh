# shellcheck shell=bash
# Finds a Python, gets uv and fills .venv: what setup.sh, test.sh and .ci/run have in common. Sourced, never run.
# Written for bash 3.2 and up. The caller sets `root` (the checkout) and `set -euo pipefail`.
#
# After `prepare`:
#   python  .venv's interpreter
#   uv      a working uv, or empty where there is none for this machine (pip installs then)

say() { printf '%s\n' "$*"; }

# fail WHAT NEXT: the form every error of Retrieval has.
fail() {
  printf 'error: %s\n  next: %s\n' "$1" "$2" >&2
  exit 1
}

python_fits() {
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' >/dev/null 2>&1
}

# The interpreter itself: neither a version manager's shim nor a virtual environment that may be replaced.
python_itself() {
  "$1" -c 'import sys; print(getattr(sys, "_base_executable", None) or sys.executable)'
}

find_python() {
  local candidate
  if [ -n "${RETRIEVAL_PYTHON:-}" ]; then
    python_fits "$RETRIEVAL_PYTHON" ||
      fail "RETRIEVAL_PYTHON=$RETRIEVAL_PYTHON is not a Python 3.11, 3.12 or 3.13" "point it at one, or unset it"
    python_itself "$RETRIEVAL_PYTHON"
    return
  fi
  for candidate in python3 python3.13 python3.12 python3.11 python; do
    if command -v "$candidate" >/dev/null 2>&1 && python_fits "$candidate"; then
      python_itself "$candidate"
      return
    fi
  done
  # One that uv already keeps on this machine; nothing is downloaded.
  if candidate=$(uv python find --no-python-downloads '>=3.11,<3.14' 2>/dev/null) && python_fits "$candidate"; then
    python_itself "$candidate"
    return
  fi
  candidate=$(python3 --version 2>/dev/null || printf 'none')
  fail "Retrieval needs Python 3.11, 3.12 or 3.13; python3 here is: $candidate" \
    "install one and run this again, or name it: RETRIEVAL_PYTHON=/path/to/python3.12 $0"
}

make_venv() {
  python=$root/.venv/bin/python
  if [ -x "$python" ] && python_fits "$python"; then
    base=$(python_itself "$python")
    return
  fi
  if [ -e "$root/.venv" ] || [ -L "$root/.venv" ]; then
    [ -f "$root/.venv/pyvenv.cfg" ] || [ -L "$root/.venv" ] ||
      fail "$root/.venv is in the way: it is no Python environment" "move it aside and run this again"
    say "replacing .venv: its Python is missing or not 3.11 to 3.13"
    rm -rf -- "$root/.venv"
  fi
  base=$(find_python)
  # Without pip, since a Debian python3 lacks what `venv` needs to bring pip along; uv installs from outside.
  "$base" -m venv --without-pip "$root/.venv" ||
    fail "$base cannot make a virtual environment" "install its venv module (on Debian and Ubuntu: apt-get install python3-venv)"
}

# Sets uv: the one on PATH, or one fetched with pip into a folder of its own inside .venv.
get_uv() {
  local tools=$root/.venv/tools
  pip=""
  uv=$(command -v uv || true)
  if [ -n "$uv" ] && "$uv" --version >/dev/null 2>&1; then
    return
  fi
  uv=$tools/bin/uv
  if "$uv" --version >/dev/null 2>&1; then
    pip=$tools/bin/python
    return
  fi
  say "getting uv"
  local options="--quiet --disable-pip-version-check --root-user-action=ignore --require-hashes --only-binary :all:"
  if { [ -x "$tools/bin/python" ] || "$base" -m venv "$tools" >/dev/null 2>&1; } &&
    "$tools/bin/python" -m pip --version >/dev/null 2>&1; then
    pip=$tools/bin/python
    # shellcheck disable=SC2086 # a list of options
    "$pip" -m pip install $options -r "$root/.ci/requirements/uv.txt" 2>/dev/null || uv=""
  elif "$base" -m pip --version >/dev/null 2>&1; then
    pip=$base
    # shellcheck disable=SC2086 # a list of options
    "$pip" -m pip install $options --target "$tools" -r "$root/.ci/requirements/uv.txt" 2>/dev/null || uv=""
  else
    fail "this machine has neither uv nor pip, and $base cannot bring pip along" \
      "install one of them (on Debian and Ubuntu: apt-get install python3-venv) and run this again"
  fi
  [ -n "$uv" ] && "$uv" --version >/dev/null 2>&1 && return
  say "uv cannot be had here; pip installs instead"
  uv=""
}

# One setting of pip, from its environment or its files: pip_setting NAME.
pip_setting() {
  printf '%s\n' "$pip_settings" | sed -n "s/^\(global\|install\|:env:\)\.$1='\(.*\)'\$/\2/p" | tail -n 1 | sed 's/\\n/ /g'
}

# uv does not read pip's configuration. Where only pip has been told about an index, a mirror or a certificate, uv is
# told the same; whoever has configured uv itself is left alone.
carry_index_settings() {
  local pip_settings value
  [ -n "$uv" ] || return 0
  [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}${UV_INDEX:-}${UV_CONFIG_FILE:-}" ] || return 0
  for value in "${XDG_CONFIG_HOME:-${HOME:-/nonexistent}/.config}/uv/uv.toml" /etc/uv/uv.toml; do
    [ ! -f "$value" ] || return 0
  done
  pip_settings=$("${pip:-$base}" -m pip config list 2>/dev/null || env | sed -n \
    -e "s/^PIP_INDEX_URL=\(.*\)/:env:.index-url='\1'/p" -e "s/^PIP_EXTRA_INDEX_URL=\(.*\)/:env:.extra-index-url='\1'/p" \
    -e "s/^PIP_FIND_LINKS=\(.*\)/:env:.find-links='\1'/p" -e "s/^PIP_CERT=\(.*\)/:env:.cert='\1'/p" \
    -e "s/^PIP_TRUSTED_HOST=\(.*\)/:env:.trusted-host='\1'/p" -e "s/^PIP_NO_INDEX=\(.*\)/:env:.no-index='\1'/p")
  value=$(pip_setting index-url) && [ -z "$value" ] || export UV_DEFAULT_INDEX="$value"
  value=$(pip_setting extra-index-url) && [ -z "$value" ] || export UV_INDEX="$value"
  value=$(pip_setting find-links | tr ' ' ',') && [ -z "$value" ] || export UV_FIND_LINKS="${UV_FIND_LINKS:-$value}"
  value=$(pip_setting trusted-host) && [ -z "$value" ] || export UV_INSECURE_HOST="${UV_INSECURE_HOST:-$value}"
  value=$(pip_setting cert) && [ -z "$value" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$value}"
  value=$(pip_setting no-index) && [ -z "$value" ] || export UV_NO_INDEX="${UV_NO_INDEX:-$value}"
}

# install ARGUMENTS…: into .venv. Progress on a terminal, silence elsewhere.
install() {
  local quiet="--quiet"
  [ ! -t 2 ] || quiet=""
  # shellcheck disable=SC2086 # an option or nothing
  if [ -n "$uv" ]; then
    "$uv" pip install $quiet --python "$python" "$@"
  else
    "$pip" -m pip --python "$python" install $quiet --disable-pip-version-check --root-user-action=ignore "$@"
  fi || fail "the packages could not be installed" \
    "see the message above; a package index of your own is set with UV_DEFAULT_INDEX or pip's index-url"
}

# install_requirements NAME: one of .ci/requirements, every file checked against its hash.
install_requirements() {
  install --require-hashes -r "$root/.ci/requirements/$1.txt"
}

# The project itself, so that the checkout is what runs. Its build backend is among the requirements: nothing more
# is fetched.
install_project() {
  install --no-deps --no-build-isolation --editable "$root"
}

# Compiled once here instead of during somebody's first command. Foreign packages may ship files that do not compile.
compile_bytecode() {
  "$python" -m compileall -q -j 0 "$root/.venv/lib" >/dev/null 2>&1 || true
  "$python" -m compileall -q "$root/pipeline" "$root/serve"
}

# prepare NAME: .venv with the requirements NAME and the project.
prepare() {
  make_venv
  get_uv
  carry_index_settings
  install_requirements "$1"
  install_project
  compile_bytecode
}
