#!/usr/bin/env bash
# Sets up, builds and tests nanquest.
#
#   tests/run.sh                  # the tests of every day (docs/testing.md), in build/; ends with what took longest and what failed
#   tests/run.sh --label guard    # the tests of one room or kind
#   tests/run.sh --night          # all tests: every model, optimizer, precision and habit under the probe; takes hours
#   tests/run.sh --label faultbench  # programs with a known fault: is the verdict right? (tests/faultbench/run.py for all)
#   tests/run.sh --bench          # every benchmark: "name ratio goal ok|short spread", one line each
#   tests/run.sh --asan           # AddressSanitizer and UBSan over what reads files and numbers, in build/asan; --night: the viewer too
#   tests/run.sh --debug          # all tests of an unoptimised build, in build/debug
#   tests/run.sh --tidy           # clang-tidy over sources that changed; --night: over all
#   tests/run.sh --torch-2.11     # probe and replay against the oldest LibTorch, in build/torch-2.11: built, and one replay; --night: their tests
#   tests/run.sh --wheel [MINORS] # no tests: dist/nanquest-*.whl, for minor versions of torch (default: cmake/wheel/torch.txt) and old systems
#
# Exit code: CTest's (0: all passed), or the failed stage's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  sed -n '2,/^$/{/^#/!d;s/^# \{0,1\}//;p}' tests/run.sh
  cat <<'TEXT'
Options:
  --label REGEX   only tests with such a label (a folder of tests/, or unit, e2e, ui, image, fuzz, …); repeatable.
                  "nightly" runs only with --night, or if it is named here
  --night         also what runs only at night; and each Python program in an interpreter of its own (tests/warm)
  --bench         build and run the benchmarks instead of the tests
  --asan          the sanitizer build instead of the release build
  --debug         the unoptimised build instead of the release build
  --tidy          clang-tidy instead of the tests: over what differs from origin/main, or, where that is here, over what the last ten
                  commits brought (NANQUEST_TIDY_BASE names another revision); the twelve units changed last at most. With --night
                  over all sources
  --torch-2.11    the oldest LibTorch instead of the pinned one
  --wheel         builds one Python package for several minor versions of torch, such as 2.11,2.15, each in a folder build-wheel-MINOR
  --jobs N        compile jobs and tests at a time (default: processors, at most one for each 2 GiB of memory)
  --help          this text
TEXT
}

mode=tests
night=0
labels=()
jobs="" minors=""
while [ $# -gt 0 ]; do
  case "$1" in
    --label) [ $# -ge 2 ] || { echo "run.sh: --label needs a name" >&2; exit 2; }; labels+=(-L "$2"); shift ;;
    --jobs) [ $# -ge 2 ] || { echo "run.sh: --jobs needs a number" >&2; exit 2; }; jobs="$2"; shift ;;
    --night) night=1; export NANQUEST_TEST_FRESH=1 ;;
    --bench) mode=bench ;;
    --asan) mode=asan ;;
    --debug) mode=debug ;;
    --tidy) mode=tidy; NANQUEST_WANT_TIDY=1 ;;
    --torch-2.11) mode=oldest; NANQUEST_WANT_OLDEST_TORCH=1 ;;
    --wheel) mode=wheel; case "${2:-}" in [0-9]*) minors="${2//,/ }"; shift ;; esac ;;
    --help | -h) usage; exit 0 ;;
    *) echo "run.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done

case "$mode" in tests | bench | debug) NANQUEST_WANT_TEST_PACKAGES=1 ;; esac
. cmake/setup.sh

skipped=(-LE '^nightly$')
[[ $night -eq 0 && "${labels[*]}" != *nightly* ]] || skipped=()
[ -n "$jobs" ] || jobs="$(nq_jobs)"

# configure PRESET BUILD_FOLDER [-D…]; build BUILD_FOLDER [target…]; test_in BUILD_FOLDER [ctest options]
configure() {
  local preset="$1" folder="$2"
  local log="$folder/configure.log"
  shift 2
  mkdir -p "$folder"
  cmake --preset "$preset" -B "$folder" "${NANQUEST_CMAKE_ARGS[@]}" "$@" >"$log" 2>&1 || {
    cat "$log" >&2
    echo "run.sh: configuring $folder failed" >&2
    exit 70
  }
  sed -n '/^-- nanquest/,/^-- Config/{/^-- Config/d;p}' "$log" >&2
}
build() {
  local folder="$1" start=$SECONDS
  shift
  cmake --build "$folder" -j "$jobs" ${1:+--target "$@"} >&2 || {
    echo "run.sh: building $folder failed" >&2
    exit 70
  }
  echo "run.sh: built $folder in $((SECONDS - start)) s" >&2
}
test_in() {
  local folder="$1" code=0
  shift
  # What a background job ignores its children ignore as well, and some tests interrupt theirs.
  env --default-signal=INT,QUIT,HUP ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-label-summary --no-tests=error \
    --output-junit "$PWD/$folder/tests.xml" "$@" || code=$?
  "$NANQUEST_PYTHON" tests/summary/summary.py "$folder" || true
  return "$code"
}

# What clang-tidy compares with: origin/main, or, where that is what stands here, what the last ten commits brought.
tidy_base() {
  local base="${NANQUEST_TIDY_BASE:-origin/main}"
  [ "$(git rev-parse --verify --quiet "$base")" != "$(git rev-parse HEAD)" ] || base="$(git rev-list -11 HEAD | tail -n1)"
  echo "$base"
}

run_benchmarks() {
  local program failed=0
  for program in build/bin/bench/*; do
    [ -x "$program" ] || continue
    "$program" || { echo "run.sh: $program ended with $?" >&2; failed=1; }
  done
  for program in tests/bench/*_bench.py; do
    PYTHONPATH="${NANQUEST_TEST_PACKAGES:-}" "$NANQUEST_PYTHON" "$program" ||
      { echo "run.sh: $program ended with $?" >&2; failed=1; }
  done
  return "$failed"
}

case "$mode" in
  tests)
    configure release build
    build build
    test_in build "${labels[@]}" "${skipped[@]}"
    if [ "$night" -eq 1 ] && [ "${#labels[@]}" -eq 0 ]; then  # each version of PyTorch: built for, and tried
      . cmake/wheel/wheel.sh
      make_wheel
      "$NANQUEST_PYTHON" tests/attach/install/minors.py dist/nanquest-*.whl
    fi
    ;;
  bench)
    configure release build
    build build benches nanquest_attach_python nanquest-replay
    run_benchmarks
    ;;
  asan)
    configure asan build/asan
    # Windows and pictures go through the graphics driver, whose own leaks are not ours to find.
    rooms=(base numerics snapshot trace replay fuzz) excluded='image|window|e2e'
    if [ "$night" -eq 1 ]; then rooms+=(viewer); else excluded+='|nightly'; fi
    build build/asan "${rooms[@]/#/tests-}"
    ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1}" \
      LSAN_OPTIONS="${LSAN_OPTIONS:-suppressions=$PWD/tests/leaks.supp:print_suppressions=0}" \
      UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}" \
      test_in build/asan -L "^($(IFS='|' && echo "${rooms[*]}"))\$" -LE "^($excluded)$" "${labels[@]}"
    ;;
  debug)
    configure debug build/debug
    build build/debug
    test_in build/debug "${labels[@]}" "${skipped[@]}"
    ;;
  tidy)
    # Of a configuration that nobody builds: clang can't read another compiler's precompiled headers.
    # Eight at a time, as LibTorch's headers are most of the work; at night each by itself, which finds missing includes.
    unity=ON which=(--since "$(tidy_base)" --most 12)  # some minutes; the others at night
    [ "$night" -eq 0 ] || unity=OFF which=(--all)
    configure release build/tidy "-DNANQUEST_UNITY=$unity" -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DNANQUEST_CUDA=OFF
    "$NANQUEST_PYTHON" cmake/tidy.py build/tidy "${which[@]}" --jobs "$jobs"
    ;;
  wheel)
    . cmake/wheel/wheel.sh
    make_wheel $minors  # words
    ;;
  oldest)
    configure release build/torch-2.11 "-DLibTorch_ROOT=$NANQUEST_OLDEST_TORCH/torch" -DNANQUEST_TORCH=ON \
      -DNANQUEST_VIEWER=OFF -DNANQUEST_CUDA=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O1  # runs once: the compiler's time is what counts
    if [ "$night" -eq 1 ]; then
      build build/torch-2.11 tests-tensor tests-observe tests-record tests-step tests-guard tests-replay
      test_in build/torch-2.11 -L '^(tensor|observe|record|step|guard|replay)$' "${labels[@]}"
    else
      build build/torch-2.11 nanquest_guard nanquest_attach nanquest-replay replay_unseen_test
      test_in build/torch-2.11 -R '^replay_unseen_test$' "${labels[@]}"
    fi
    ;;
esac
