#!/usr/bin/env bash
# Installs everything that building nanquest needs, once; a second start only checks.
#
#   cmake/setup.sh                # by hand; samples/demo.sh and tests/run.sh source it
#
# Distribution packages (cmake/packages-apt.txt) come from apt. Everything else goes into one cache folder, keyed by its
# pins, so that another checkout starts at once. A part is made under a lock and marked `.complete` last; an incomplete
# part is made again.
#
# Reads: NANQUEST_CACHE (default ${XDG_CACHE_HOME:-~/.cache}/nanquest), NANQUEST_SKIP_PACKAGES=1 (does not install
#   distribution packages), CCACHE_DIR.
# Sets when sourced: NANQUEST_CACHE, NANQUEST_PYTHON, NANQUEST_IMGUI, NANQUEST_CMAKE_ARGS (array), PATH, CCACHE_DIR.

nanquest_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
NANQUEST_CACHE="${NANQUEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nanquest}"
NANQUEST_TORCH_MIN=2.11
NANQUEST_CMAKE_MIN=3.25

nq_say() { printf 'set-up: %s\n' "$*" >&2; }
nq_die() { printf 'set-up: error: %s\n' "$*" >&2; exit 70; }
# Lines of a list without comments and blanks.
nq_lines() { sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$1"; }
nq_at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n1)" = "$2" ]; }
# Compile jobs: as many as processors, at most one for each 2 GiB of free memory.
nq_jobs() {
  local memory
  memory=$(($(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo) / 2097152))
  if [ "$(nproc)" -le "$memory" ]; then nproc; else echo $((memory > 0 ? memory : 1)); fi
}
nq_hash() { sha256sum | cut -c1-12; }

# --- distribution packages ------------------------------------------------------------------------
nq_missing_packages() {
  local wanted installed
  wanted="$({ nq_lines "$nanquest_root/cmake/packages-apt.txt"; [ "${NANQUEST_WANT_TIDY:-0}" = 0 ] || echo clang-tidy; } | sort -u)"
  # shellcheck disable=SC2086
  installed="$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' $wanted 2>/dev/null | sed -n 's/^ii //p' | sort -u)"
  comm -23 <(printf '%s\n' "$wanted") <(printf '%s\n' "$installed")
}

nq_packages() {
  [ "${NANQUEST_SKIP_PACKAGES:-0}" = 1 ] && return
  local release id version missing as_root=()
  release="${NANQUEST_OS_RELEASE:-/etc/os-release}"
  # shellcheck disable=SC1090
  id="$(. "$release" >/dev/null 2>&1; echo "${ID:-unknown}")"
  # shellcheck disable=SC1090
  version="$(. "$release" >/dev/null 2>&1; echo "${VERSION_ID:-}")"
  case "$id $version" in
    "debian 12" | "debian 13" | "ubuntu 22.04" | "ubuntu 24.04") ;;
    *)
      nq_say "this script knows Debian 12/13 and Ubuntu 22.04/24.04; this is $id $version. Install what these"
      nq_say "packages hold, then start again with NANQUEST_SKIP_PACKAGES=1:"
      nq_lines "$nanquest_root/cmake/packages-apt.txt" | tr '\n' ' ' | fold -s -w 100 | sed 's/^/  /' >&2
      printf '\n' >&2
      exit 2 ;;
  esac
  missing="$(nq_missing_packages | tr '\n' ' ')"
  [ -z "${missing// /}" ] && return
  nq_say "installing distribution packages: $missing"
  local by_hand="run this yourself, then start again: apt-get install --no-install-recommends $missing"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || nq_die "not root and no sudo; $by_hand"
    as_root=(sudo)
    [ -t 0 ] || as_root=(sudo -n)
    "${as_root[@]}" true || nq_die "sudo was refused; $by_hand"
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 ||
    nq_die "apt-get update failed (network?); $by_hand"
  # shellcheck disable=SC2086
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 ||
    nq_die "apt-get install failed; $by_hand"
}

# --- the cache ------------------------------------------------------------------------------------
# nq_make FOLDER WHAT COMMAND…: runs COMMAND with FOLDER unless FOLDER is complete. Under the lock, one at a time.
nq_make() {
  local folder="$1" what="$2" start=$SECONDS
  shift 2
  [ -e "$folder/.complete" ] && return
  rm -rf "$folder"
  nq_say "$what → $folder"
  if ! "$@" "$folder"; then
    rm -rf "$folder"
    nq_die "$what failed; the lines above say why (network? disk: $(df -h --output=avail "$NANQUEST_CACHE" | tail -n1 | tr -d ' ') free)"
  fi
  touch "$folder/.complete"
  nq_say "$what: done in $((SECONDS - start)) s"
}

nq_venv() {  # REQUIREMENTS_TEXT PYTHON FOLDER
  local list status=0
  "$2" -m venv "$3" || return
  list="$3/requirements.txt"
  printf '%s\n' "$1" >"$list"
  "$3/bin/python" -m pip --disable-pip-version-check --quiet install -r "$list" >&2 || status=$?
  return "$status"
}

# A separate folder of links: the environment's python3 must not come before the active one, which may have torch.
nq_toolbox() {  # REQUIREMENTS_TEXT PYTHON FOLDER
  local tool
  nq_venv "$1" "$2" "$3" && mkdir "$3/tools" || return
  for tool in cmake ctest ninja; do
    [ -x "$3/bin/$tool" ] && ln -s "../bin/$tool" "$3/tools/$tool" || return
  done
}

nq_imgui() {  # FOLDER
  local work="$1.part" archive
  rm -rf "$work"
  mkdir -p "$work" "$1" || return
  nq_lines "$nanquest_root/cmake/sources.txt" >"$work/sources.txt"
  # pip prepares the package's metadata with build tools of its own, which would take minutes from source; so only this
  # package is requested as source. Only its file is used.
  "$nq_python3" -m pip --disable-pip-version-check --quiet download --no-deps --no-binary imgui-bundle \
    --require-hashes -r "$work/sources.txt" -d "$work" >&2 || { rm -rf "$work"; return 1; }
  archive="$(ls "$work"/imgui_bundle-*.tar.gz)" || return
  tar -xzf "$archive" -C "$1" --strip-components=1 --wildcards '*/LICENSE' '*/external/imgui/*' \
    '*/external/implot/*' '*/external/imgui_test_engine/*' || { rm -rf "$work"; return 1; }
  rm -rf "$work"
}

nq_oldest_torch() {  # FOLDER
  "$nq_python3" -m pip --disable-pip-version-check --quiet install --no-deps --target "$1" \
    -r "$nanquest_root/cmake/requirements-oldest.txt" >&2
}

nq_test_packages() {  # FOLDER
  "$NANQUEST_PYTHON" -m pip --disable-pip-version-check --quiet install --no-deps --no-compile --target "$1" \
    -r "$nanquest_root/cmake/requirements-models.txt" >&2 || return
  # Compiling transformers at each start would take half the time of a short test program. Tests write no bytecode: a
  # process with a file size limit would write a truncated file, and Python would use it.
  "$NANQUEST_PYTHON" -m compileall -q -j 0 "$1" >/dev/null || true
}

# Version of torch in a Python, and whether it has the modules that tests import: "2.15.0 all|some".
nq_torch_of() {
  "$1" - 2>/dev/null <<'PY'
import importlib.metadata as metadata, importlib.util as util
version = metadata.version("torch").split("+")[0]
print(version, "all" if all(util.find_spec(m) for m in ("numpy", "h5py", "safetensors")) else "some")
PY
}

nq_pick_python3() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      nq_python3="$(command -v "$candidate")"
      return
    fi
  done
  nq_die "no Python 3.10 or newer with venv was found (package python3-venv)"
}

# Sets NANQUEST_PYTHON: the active Python if its torch is new enough, else the user's .venv, else the cache's.
nq_python() {
  local found version modules requirements key folder
  found="$(nq_torch_of python3)" || found=""
  read -r version modules <<<"$found"
  if [ -n "$version" ] && nq_at_least "$version" "$NANQUEST_TORCH_MIN"; then
    NANQUEST_PYTHON="$(python3 -c 'import sys; print(sys.executable)')"
    nq_say "torch $version of the active Python ($NANQUEST_PYTHON)"
    [ "$modules" = all ] ||
      nq_say "it lacks numpy, h5py or safetensors, so tests that use them are off; pip install them to turn these on"
    return
  fi
  if [ -d "$nanquest_root/.venv" ] && [ ! -L "$nanquest_root/.venv" ]; then
    found="$(nq_torch_of "$nanquest_root/.venv/bin/python")" || found=""
    read -r version modules <<<"$found"
    if [ -z "$version" ] || ! nq_at_least "$version" "$NANQUEST_TORCH_MIN"; then
      nq_die "$nanquest_root/.venv is your own and has no torch $NANQUEST_TORCH_MIN or newer: install it there, or move the folder away"
    fi
    NANQUEST_PYTHON="$nanquest_root/.venv/bin/python"
    nq_say "torch $version of your own .venv"
    return
  fi
  requirements="$(nq_lines "$nanquest_root/cmake/requirements.txt" | grep -vE '^(cmake|ninja)==')"
  key="$("$nq_python3" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-$(
    { printf '%s\n' "$requirements"; "$nq_python3" -c 'import sys; print(sys.base_prefix)'; } | nq_hash)"
  folder="$NANQUEST_CACHE/venv-$key"
  nq_make "$folder" "Python environment with torch (about 0.6-3 GB to download, 6 GB on disk)" \
    nq_venv "$requirements" "$nq_python3"
  [ "$(readlink "$nanquest_root/.venv" || true)" = "$folder" ] || ln -sfn "$folder" "$nanquest_root/.venv"
  NANQUEST_PYTHON="$folder/bin/python"
}

# CMake and ninja from the package index if the distribution's are too old.
nq_tools() {
  local have requirements folder
  have="$(cmake --version 2>/dev/null | sed -n '1s/.*version //p')"
  if [ -n "$have" ] && nq_at_least "$have" "$NANQUEST_CMAKE_MIN" && command -v ninja >/dev/null; then
    return
  fi
  requirements="$(nq_lines "$nanquest_root/cmake/requirements.txt" | grep -E '^(cmake|ninja)==')"
  folder="$NANQUEST_CACHE/toolbox-$(printf '%s\n' "$requirements" "$nq_python3" | nq_hash)"
  nq_make "$folder" "CMake and ninja (found: ${have:-none}, needed: $NANQUEST_CMAKE_MIN)" nq_toolbox "$requirements" "$nq_python3"
  PATH="$folder/tools:$PATH"
}

nq_setup() {
  nq_packages
  mkdir -p "$NANQUEST_CACHE" || nq_die "can't make $NANQUEST_CACHE; set NANQUEST_CACHE to a folder of yours"
  exec {nq_lock}>"$NANQUEST_CACHE/.lock" || nq_die "can't write $NANQUEST_CACHE"
  if ! flock -n "$nq_lock"; then
    nq_say "another set-up is at work in $NANQUEST_CACHE; waiting for it"
    flock "$nq_lock"
  fi
  nq_pick_python3
  NANQUEST_IMGUI="$NANQUEST_CACHE/imgui-$(nq_lines "$nanquest_root/cmake/sources.txt" | nq_hash)"
  # The source package is fetched beside the Python environment: one waits for the network, the other for the disk.
  local imgui_job=""
  if [ ! -e "$NANQUEST_IMGUI/.complete" ]; then
    (nq_make "$NANQUEST_IMGUI" "Dear ImGui and ImPlot" nq_imgui) &
    imgui_job=$!
  fi
  nq_tools
  nq_python
  if [ -n "$imgui_job" ]; then
    wait "$imgui_job" || exit 70
  fi
  if [ "${NANQUEST_WANT_OLDEST_TORCH:-0}" = 1 ]; then
    NANQUEST_OLDEST_TORCH="$NANQUEST_CACHE/torch-oldest-$({ cat "$nanquest_root/cmake/requirements-oldest.txt"; echo "$nq_python3"; } | nq_hash)"
    nq_make "$NANQUEST_OLDEST_TORCH" "the oldest torch that must work" nq_oldest_torch
  fi
  if [ "${NANQUEST_WANT_TEST_PACKAGES:-0}" = 1 ]; then
    if "$NANQUEST_PYTHON" -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      NANQUEST_TEST_PACKAGES="$NANQUEST_CACHE/test-packages-$({ cat "$nanquest_root/cmake/requirements-models.txt"
        "$NANQUEST_PYTHON" -c 'import sys; print(sys.version_info[:2])'; echo compiled; } | nq_hash)"
      nq_make "$NANQUEST_TEST_PACKAGES" "what tests train and log with (transformers, torchvision, tensorboard; 46 MB to download)" nq_test_packages
    else
      nq_say "tests that train models of transformers and torchvision are off: they need Python 3.11 with pip"
    fi
  fi
  exec {nq_lock}>&-
  CCACHE_DIR="${CCACHE_DIR:-$NANQUEST_CACHE/ccache}"
  NANQUEST_CMAKE_ARGS=(
    "-DLibTorch_ROOT=$("$NANQUEST_PYTHON" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')"
    "-DNANQUEST_PYTHON_EXECUTABLE=$NANQUEST_PYTHON"
    "-DNANQUEST_IMGUI_DIR=$NANQUEST_IMGUI/external/imgui/imgui"
    "-DNANQUEST_IMPLOT_DIR=$NANQUEST_IMGUI/external/implot/implot")
  [ -z "${NANQUEST_TEST_PACKAGES:-}" ] || NANQUEST_CMAKE_ARGS+=("-DNANQUEST_TEST_PACKAGES=$NANQUEST_TEST_PACKAGES")
  export NANQUEST_CACHE CCACHE_DIR PATH
  nq_say "ready in $SECONDS s (cache $NANQUEST_CACHE)"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -euo pipefail
  nq_setup
else
  nq_setup
fi
