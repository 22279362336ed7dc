# Sourced by tests/run.sh: make_wheel [MINOR…] builds dist/nanquest-*.whl for these minor versions of torch (default: those of torch.txt), each in
# build-wheel-MINOR. The cache keeps torch's headers and libraries, the older system and, by ccache, what was compiled.

nq_older_system() { NANQUEST_JOBS="$jobs" cmake/wheel/older_system.sh "$1" >&2; }  # FOLDER

# Headers and the libraries to link with: a thirtieth of what torch is.
nq_torch_to_link() {  # RELEASE FOLDER
  local release="$1" folder="$2" work="$2.part"
  rm -rf "$work"
  mkdir -p "$work" "$folder" || return
  "$NANQUEST_PYTHON" -m pip --disable-pip-version-check --quiet download --no-deps --only-binary :all: -d "$work" "torch==$release" >&2 &&
    (cd "$folder" && "$NANQUEST_PYTHON" -c 'import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
keep = ("torch/include/", "torch/version.py", "torch/lib/libtorch_cpu.so", "torch/lib/libc10.so", "torch/lib/libgomp")
wheel.extractall(members=[name for name in wheel.namelist() if name.startswith(keep)])' "$work"/torch-*.whl) || { rm -rf "$work"; return 1; }
  rm -rf "$work"
}

make_wheel() {
  local release minor folder older viewer=ON kernels=AUTO builds=() wanted=("$@")
  older="$NANQUEST_CACHE/older-system-$(cat cmake/wheel/{packages.txt,older_system.sh,stub_library.py} | nq_hash)"
  nq_make "$older" "an older system's libraries, and HDF5" nq_older_system
  rm -f dist/nanquest-*.whl
  # The newest first: what belongs to no torch (the viewer, the kernels for GPUs if nvcc is here) is taken from there.
  for release in $(nq_lines cmake/wheel/torch.txt | sort -rV); do
    minor="${release%.*}"
    [ "${#wanted[@]}" -eq 0 ] || [[ " ${wanted[*]} " == *" $minor "* ]] || continue
    folder="$(dirname "${NANQUEST_CMAKE_ARGS[0]#*=}")"  # what is built here anyway is in ccache
    if ! grep -q "^__version__ = '$release" "$folder/torch/version.py"; then
      folder="$NANQUEST_CACHE/torch-to-link-$release"
      nq_make "$folder" "torch $release, to link with" nq_torch_to_link "$release"
    fi
    configure release "build-wheel-$minor" "-DLibTorch_ROOT=$folder/torch" "-DNANQUEST_OLDER_SYSTEM=$older" -DNANQUEST_TORCH=ON \
      "-DNANQUEST_VIEWER=$viewer" "-DNANQUEST_CUDA=$kernels" -DNANQUEST_TRAINER=ON -DNANQUEST_MPI=OFF -DNANQUEST_PYTHON=OFF -DNANQUEST_TESTS=OFF
    build "build-wheel-$minor" nanquest_python_package
    builds+=("build-wheel-$minor")
    viewer=OFF kernels=OFF
  done
  [ "${#builds[@]}" -gt 0 ] || { echo "run.sh: cmake/wheel/torch.txt has none of ${wanted[*]}" >&2; exit 2; }
  "$NANQUEST_PYTHON" cmake/wheel/assemble.py dist "${builds[@]}"
}
