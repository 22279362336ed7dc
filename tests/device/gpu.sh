#!/usr/bin/env bash
# All that only a GPU can tell, in about half an hour, as tables: are bits the same, are faults found, the same of compiled programs, what
# does it cost and how often is it waited for, and what would it cost at least. docs/devices.md says how to read it.
#
#   tests/device/gpu.sh            # sets up, builds into build/gpu, then measures; NANQUEST_PYTHON names another Python
#                                  # with a CUDA torch than the one that the set-up brings
#   tests/device/gpu.sh --no-build # measures what is built
#
# Exit code: 0 every line of the table is ok, 1 one is not, 2 there is no GPU, no CUDA torch or no toolkit, 70 the
# build failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

no_gpu() { echo "gpu.sh: $1" >&2; exit 2; }
build=build/gpu
case "${1:-}" in "" | --no-build) ;; *) echo "gpu.sh: unknown option $1 (--no-build or nothing)" >&2; exit 2 ;; esac

[ -n "$(nvidia-smi -L 2>/dev/null)" ] || no_gpu "no GPU here (nvidia-smi lists none): nothing was run"
chosen="${NANQUEST_PYTHON:-}"
. cmake/setup.sh
python="${chosen:-$NANQUEST_PYTHON}"
"$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null ||
  no_gpu "no GPU here that torch can use: nothing was run"
nvcc="$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)"
[ -x "$nvcc" ] || no_gpu "no CUDA toolkit (nvcc) here: nothing was run"

if [ "${1:-}" != --no-build ]; then
  root="$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')"
  mkdir -p "$build"
  {
    cmake -S . -B "$build" "${NANQUEST_CMAKE_ARGS[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES=native \
      -DNANQUEST_CUDA=ON -DNANQUEST_TORCH=ON -DNANQUEST_VIEWER=OFF -DLibTorch_ROOT="$root" -DNANQUEST_LINK_TORCH_CUDA=ON &&
      cmake --build "$build" -j "$(nproc)" --target gpu_test nanquest_attach_python nanquest-replay
  } >"$build/log" 2>&1 || { tail -n 40 "$build/log" >&2; echo "gpu.sh: the build failed ($build/log)" >&2; exit 70; }
fi

# cuBLAS gives the same bits twice only so.
export CUBLAS_WORKSPACE_CONFIG=:4096:8 NANQUEST_BIN="$PWD/$build/bin" PYTHONDONTWRITEBYTECODE=1
NANQUEST_ATTACH_LIBRARY="$(find "$PWD/$build" -name 'libnanquest_attach*.so' -print -quit)"
export NANQUEST_ATTACH_LIBRARY
status=0
"$python" tests/device/gpu.py --device cuda --scans "$build/bin/tests/gpu_test" || status=1
"$python" tests/device/gpu_compiled.py || status=1
"$python" tests/device/gpu_cost.py || status=1
"$python" tests/device/gpu_floor.py || status=1
exit "$status"
