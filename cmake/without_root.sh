#!/usr/bin/env bash
# cmake/without_root.sh FOLDER: what nanquest is built with, from the packages of Debian or Ubuntu, for a machine on which you are not root.
# Nothing is installed: packages are downloaded and unpacked into FOLDER, which must stay. Then:
#
#   . FOLDER/env && pip install .
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
folder="$(realpath -m "$1")"
mkdir -p "$folder/debs"
plan="$(apt-get install --simulate --no-install-recommends libhdf5-dev libcli11-dev nlohmann-json3-dev)"
packages="$(sed -n 's/^Inst \([^ ]*\).*/\1/p' <<<"$plan")"
if [ -n "$packages" ]; then
  (cd "$folder/debs" && apt-get -qq download $packages)  # words
  for package in "$folder"/debs/*.deb; do dpkg-deb -x "$package" "$folder"; done
fi
rm -rf "$folder/debs"
libraries="$folder/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")"
# As RPATH, not RUNPATH: where the loader also looks for what HDF5 itself needs.
cat >"$folder/env" <<ENV
export CMAKE_PREFIX_PATH="$folder/usr\${CMAKE_PREFIX_PATH:+:\$CMAKE_PREFIX_PATH}"
export HDF5_ROOT="$folder/usr/lib/${libraries##*/}/hdf5/serial"
export LDFLAGS="-Wl,--disable-new-dtags,-rpath,$libraries:$libraries/hdf5/serial \${LDFLAGS:-}"
ENV
echo "now: . $folder/env && pip install ."
