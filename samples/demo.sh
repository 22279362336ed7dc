#!/usr/bin/env bash
# The story, from nothing: sets up, builds, trains a small GPT in fp16 on real text until a value overflows,
# survives that, runs the recorded step again, explains it, and draws it.
#
#   samples/demo.sh                   # text: this repository's own sources and documents
#   samples/demo.sh --data FILE|DIR   # or yours
#
# Everything it makes is kept under runs/; the trainer moves the files of an earlier run to runs/story/earlier/.
# Exit code 0: an incident happened, and was survived, reproduced and explained.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  sed -n '2,/^set/{/^#/!d;s/^# \{0,1\}//;p}' samples/demo.sh
  cat <<'TEXT'
Options:
  --data FILE|DIR   text to train on
  --config FILE     settings of the run (default samples/configs/story.toml)
  --run-dir DIR     where the run is written (default runs/story)
  --bin DIR         programs that are already built; no set-up, no build
  --no-window       do not open the window at the end
  --help            this text
TEXT
}

data="" config=samples/configs/story.toml run=runs/story bin="" window=1
while [ $# -gt 0 ]; do
  case "$1" in
    --data | --config | --run-dir | --bin)
      [ $# -ge 2 ] || { echo "demo.sh: $1 needs a value" >&2; exit 2; }
      case "$1" in
        --data) data="$2" ;;
        --config) config="$2" ;;
        --run-dir) run="${2%/}" ;;
        --bin) bin="${2%/}" ;;
      esac
      shift ;;
    --no-window) window=0 ;;
    --help | -h) usage; exit 0 ;;
    *) echo "demo.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done
[ -z "$data" ] || [ -e "$data" ] || { echo "demo.sh: --data $data does not exist" >&2; exit 2; }
[ -f "$config" ] || { echo "demo.sh: --config $config does not exist" >&2; exit 2; }

bold="" plain=""
if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
stage() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain" >&2; }
fail() { printf 'demo.sh: %s\n' "$*" >&2; exit 70; }

if [ -z "$bin" ]; then
  stage "Set-up and build"
  . cmake/setup.sh
  mkdir -p build
  cmake --preset release "${NANQUEST_CMAKE_ARGS[@]}" >build/configure.log 2>&1 || {
    cat build/configure.log >&2
    fail "configuring failed"
  }
  cmake --build build -j "$(nq_jobs)" --target programs >&2 || fail "building failed; the lines above say where"
  bin=build/bin
fi
for program in nanquest-trainer nanquest-replay nanquest-viewer; do
  [ -x "$bin/$program" ] || fail "$bin/$program was not built; the configure summary in build/configure.log says why"
done
began=$SECONDS

mkdir -p "$(dirname "$run")"
if [ -z "$data" ]; then
  # A copy, so that what was trained on stays what the snapshot's sample ids name.
  data="$run-data"
  rm -rf "$data"
  mkdir -p "$data"
  find README.md LICENSE probe replay trainer viewer samples tests cmake -type f \
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.py' -o -name '*.md' -o -name '*.txt' -o -name '*.cmake' \
    -o -name '*.sh' -o -name '*.toml' -o -name LICENSE \) -print0 | LC_ALL=C sort -z |
    tar --create --null --files-from=- | tar --extract --directory "$data"
fi

stage "Training: $config on $data"
code=0
"$bin/nanquest-trainer" --config "$config" --data "$data" --run-dir "$run" || code=$?
case "$code" in
  0 | 1) ;;  # finished; 1: something was found during the run
  4) fail "training ended on a non-finite value (exit code 4): it did not survive; see $run" ;;
  *) fail "training ended with exit code $code; the lines above say why" ;;
esac
incident="$(find "$run/incidents" -name 'step-*.h5' ! -name '*.replay.h5' 2>/dev/null | LC_ALL=C sort | head -n1)"
[ -n "$incident" ] || fail "training finished without an incident: nothing overflowed, so there is nothing to tell; see $run"

stage "Replay: $incident"
code=0
"$bin/nanquest-replay" "$incident" || code=$?
case "$code" in
  1) ;;  # the expected finding
  0) fail "replay found nothing non-finite in $incident" ;;
  *) fail "replay of $incident ended with exit code $code; the lines above say why" ;;
esac
verdict="${incident%.h5}.json"
[ -s "$verdict" ] || fail "replay wrote no $verdict"
grep -Eq '"bit_exact": *true' "$verdict" || fail "the step did not come back bit for bit; see $verdict"

stage "Pictures"
pictures="$run-pictures"  # beside the run, because nothing is written into a run
mkdir -p "$pictures"
for panel in verdict norms; do
  "$bin/nanquest-viewer" "$run" --screenshot "$pictures/$panel.png" --panel "$panel" --size 1280x860 >&2 ||
    fail "drawing the panel $panel failed (exit code $?)"
done
"$bin/nanquest-viewer" "$run" --screenshot "$pictures/window.png" --layout overview --size 1280x720 >&2 ||
  fail "drawing the window failed (exit code $?)"

stage "Told in $((SECONDS - began)) s"
cat <<TEXT
run       $run
incident  $incident
verdict   $verdict (and .md beside it)
pictures  $pictures/window.png $pictures/verdict.png $pictures/norms.png
window    $bin/nanquest-viewer $run
TEXT

if [ "$window" = 1 ] && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
  exec "$bin/nanquest-viewer" "$run"
fi
