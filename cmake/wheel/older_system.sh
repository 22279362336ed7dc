#!/usr/bin/env bash
# cmake/wheel/older_system.sh FOLDER: fills FOLDER with what the wheel is linked with: the C library and others of an older system
# (packages.txt), and HDF5 and zlib as static libraries. Needs apt-get (Debian, Ubuntu), but no root: nothing is installed.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
folder="$(realpath -m "$1")"
work="$folder.part"
trap 'rm -rf "$work"' EXIT
rm -rf "$work"
mkdir -p "$folder" "$work"/{debs,sources,state/lists/partial,cache/archives/partial,preferences.d}

# An apt of its own, which knows neither the machine's packages nor its sources.
# Where this machine has its own packages of Debian from; elsewhere a mirror of Debian must be named.
mirror="${NANQUEST_DEBIAN:-$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n1)}"
[ -n "$mirror" ] || { echo "older_system.sh: no mirror of Debian is known here (apt-get update, or name one in NANQUEST_DEBIAN)" >&2; exit 70; }
keyring="/usr/share/keyrings/debian-archive-keyring.gpg"
[ -e "$keyring" ] || { echo "older_system.sh: $keyring is missing (package debian-archive-keyring)" >&2; exit 70; }
cat >"$work/sources.list" <<LIST
deb [signed-by=$keyring] $mirror bullseye main
deb-src [signed-by=$keyring] $mirror bookworm main
LIST
cat >"$work/apt.conf" <<CONF
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "/nonexistent";
Dir::Etc::preferencesparts "$work/preferences.d";
Dir::State "$work/state";
Dir::State::status "/dev/null";
Dir::Cache "$work/cache";
APT::Sandbox::User "";
CONF
export APT_CONFIG="$work/apt.conf"
apt-get -qq update
mapfile -t packages < <(sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$here/packages.txt")
(cd "$work/debs" && apt-get -qq download "${packages[@]}")
for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$folder"; done
# Debian 11's packages have /lib beside /usr/lib, and links that start at the root of a system.
for name in lib lib64; do
  mkdir -p "$folder/usr/$name"
  [ -L "$folder/$name" ] || { cp -a "$folder/$name/." "$folder/usr/$name/"; rm -rf "${folder:?}/$name"; ln -s "usr/$name" "$folder/$name"; }
done
find "$folder" -type l | while read -r link; do
  to="$(readlink "$link")"
  [[ "$to" != /* ]] || ln -sfnr "$folder$to" "$link"
done
libraries="$folder/usr/lib/x86_64-linux-gnu"
mkdir -p "$folder/stubs"
python3 "$here/stub_library.py" "$libraries/libstdc++.so.6" "$folder/stubs/libstdc++.so" GLIBCXX_3.4.24 CXXABI_1.3.11

cd "$work/sources"
apt-get -qq source --download-only hdf5 zlib
for source in *.dsc; do dpkg-source --no-check -x "$source" "${source%%_*}" >/dev/null; done
cc="${CC:-cc} --sysroot=$folder" flags="-DNDEBUG -w -fPIC -fvisibility=hidden"
jobs=(${NANQUEST_JOBS:+-j "$NANQUEST_JOBS"})
(cd zlib && CC="$cc" CFLAGS="-O3 $flags" ./configure --static && make libz.a) >zlib.log 2>&1 || { tail -40 zlib.log >&2; exit 70; }
install -m 644 zlib/libz.a "$libraries/libz.a"
install -m 644 zlib/zconf.h zlib/zlib.h "$folder/usr/include/"
# Small, as it is in each library for each version of PyTorch; what takes time is zlib and the disk.
(cd hdf5 && ./configure CC="$cc" CFLAGS="-Os $flags" --prefix="$folder/usr" --libdir="$libraries" --disable-shared --disable-hl --disable-tests \
  --disable-tools --enable-threadsafe --with-zlib="$folder/usr" --without-szlib --enable-build-mode=production &&
  make "${jobs[@]}" -C src install) >hdf5.log 2>&1 || { tail -40 hdf5.log >&2; exit 70; }
