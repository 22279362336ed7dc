#!/bin/sh
# The program as a person meets it. $1 viewer, $2 viewer_make_run, $3 what to test, $4 viewer_make_damage
set -u
viewer="$1"; make_run="$2"; dir="$(mktemp -d)"; failures=0
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state"
"$make_run" "$dir/story" > /dev/null || exit 1
snapshot="$dir/story/incidents/step-00000131.r0.h5"

# expect CODE PATTERN command…: exit code, and a line of stdout or stderr that holds PATTERN
expect() {
  code="$1"; pattern="$2"; shift 2
  "$@" > "$dir/out" 2>&1; got=$?
  if [ "$got" != "$code" ]; then echo "FAILED: $* ended with $got, not $code"; head -5 "$dir/out"; failures=$((failures + 1)); fi
  if ! grep -q -e "$pattern" "$dir/out"; then echo "FAILED: $* did not say '$pattern'"; head -5 "$dir/out"; failures=$((failures + 1)); fi
}
one_line() { [ "$(wc -l < "$dir/out")" = 1 ] || { echo "FAILED: more than one line"; cat "$dir/out"; failures=$((failures + 1)); }; }

case "$3" in
  answers)
    expect 0 "FP16_OVERFLOW" "$viewer" "$dir/story" --text verdict
    expect 0 "FP16_OVERFLOW" "$viewer" --text verdict "$snapshot"
    expect 0 "== norms ==" "$viewer" --text "$dir/story"
    expect 0 "culprit" "$viewer" "$snapshot" --csv trace
    expect 0 "weight_norm:head" "$viewer" "$dir/story" --csv norms --statistic weight_norm
    expect 0 "notes.md:4096" "$viewer" "$dir/story" --text batch
    expect 0 "sample,id,verdict" "$viewer" "$dir/story" --csv batch
    expect 0 "head.weight" "$viewer" "$dir/story" --text tensor --tensor head.weight
    expect 0 "70 >.*nan  0x7e00  0 11111 1000000000" "$viewer" "$dir/story" --text tensor --tensor slot_data/000099 --element 70
    expect 0 "fp16 at 2^4 (16): 427 of 4,090 finite values overflow" "$viewer" "$dir/story" --text tensor --tensor slot_data/000099 --what-if fp16:16
    "$make_run" "$dir/again" > /dev/null
    expect 0 "story and again are equal in all 132 steps" "$viewer" "$dir/story" --compare "$dir/again" --text runs
    expect 0 "kind,what,story,again" "$viewer" "$dir/story" --compare "$dir/again" --csv runs
    mkdir "$dir/night"; "$make_run" "$dir/night/a" > /dev/null; "$make_run" "$dir/night/deep/b" > /dev/null
    expect 0 "kind,what,story,again,a" "$viewer" --compare "$dir/again" --compare "$dir/night/a" "$dir/story" --csv runs
    expect 0 "loss of again smoothed by 0.9" "$viewer" "$dir/story" --compare "$dir/again" --smooth 0.9 --csv timeline
    expect 0 "2 runs in night" "$viewer" "$dir/night" --text
    expect 0 "deep/b  FP16_OVERFLOW" "$viewer" "$dir/night" --text runs
    expect 0 "run,cause,incidents,last_step,written" "$viewer" "$dir/night" --csv runs
    expect 0 "nanquest-viewer runs/story" "$viewer" --help
    expect 0 "Panels: verdict, timeline, norms, trace, batch, tensor, ranks, runs or all" "$viewer" --help
    expect 0 "  curves: how it came" "$viewer" --help
    expect 0 "file format" "$viewer" --version
    # Read by a child first, all says the same.
    "$viewer" "$dir/story" --text > "$dir/plain"; "$viewer" "$dir/story" --sandbox --text > "$dir/apart"
    cmp "$dir/plain" "$dir/apart" || { echo "FAILED: --sandbox says something else"; failures=$((failures + 1)); }
    ;;
  refuses)
    expect 2 "nothing to show" "$viewer"; one_line
    expect 2 "no panel" "$viewer" "$dir/story" --text nonsense; one_line
    expect 2 'no layout "series" (choose overview, curves, tensors or compare)' "$viewer" "$dir/story" --layout series; one_line
    expect 2 "no layout" "$viewer" "$dir/story" --text --layout Overview; one_line
    expect 2 "arranges all panels" "$viewer" "$dir/story" --screenshot "$dir/a.png" --panel norms --layout curves; one_line
    expect 2 "one panel at a time" "$viewer" "$dir/story" --csv all; one_line
    expect 2 "no op" "$viewer" "$dir/story" --text trace --op 99999; one_line
    expect 2 "no layer" "$viewer" "$dir/story" --text norms --layer head.nonsense; one_line
    expect 2 "no stored tensor" "$viewer" "$dir/story" --text tensor --tensor none; one_line
    expect 2 "no element 4096" "$viewer" "$dir/story" --text tensor --tensor slot_data/000099 --element 4096; one_line
    for number in -5 -1; do
      expect 2 "no element $number" "$viewer" "$dir/story" --text tensor --element "$number"; one_line
      expect 2 "no op $number" "$viewer" "$dir/story" --text trace --op "$number"; one_line
      expect 2 "no incident at step $number" "$viewer" "$dir/story" --text verdict --step "$number"; one_line
    done
    for scale in nan 0.4 5; do expect 2 "scale must lie between" "$viewer" "$dir/story" --text --scale "$scale"; one_line; done
    expect 2 "no power of two" "$viewer" "$dir/story" --text tensor --what-if fp16:3; one_line
    expect 2 "choose one of fp32" "$viewer" "$dir/story" --text tensor --what-if fp12; one_line
    expect 2 "no incident at step" "$viewer" "$dir/story" --text verdict --step 5; one_line
    mkdir "$dir/night"; "$make_run" "$dir/night/a" > /dev/null
    for of_one in "--text verdict" "--csv norms" "--report $dir/r.html" "--text --step 131" "--compare $dir/story --text runs"; do
      expect 2 "night: is a folder of 1 run (give one of them" "$viewer" "$dir/night" $of_one; one_line
    done
    for weight in 1 -0.1 nan; do expect 2 "--smooth $weight is no weight" "$viewer" "$dir/story" --smooth "$weight" --text timeline; one_line; done
    expect 2 "night: is a folder of runs" "$viewer" "$dir/story" --compare "$dir/night" --text runs; one_line
    expect 2 "" "$viewer" --no-such-flag
    # A child that does not come back: a sentence of every file, and what needs none of them is shown.
    expect 3 "step-00000131.r0.h5: the reader did not end within its time (it is not opened" "$viewer" "$dir/story" --sandbox --sandbox-seconds 0 --text trace; one_line
    expect 0 "FP16_OVERFLOW" "$viewer" "$dir/story" --sandbox --sandbox-seconds 0 --text verdict
    expect 0 "warning: .*series.r0.h5: the reader did not end" "$viewer" "$dir/story" --sandbox --sandbox-seconds 0 --text verdict
    expect 3 "no such file" "$viewer" "$dir/none" --text; one_line
    expect 3 "none: no such file" "$viewer" "$dir/story" --compare "$dir/none" --text runs; one_line
    mkdir "$dir/empty"; expect 3 "$dir/empty" "$viewer" "$dir/empty" --text; one_line
    head -c 3000 "$snapshot" > "$dir/cut.h5"; expect 3 "cut.h5" "$viewer" "$dir/cut.h5" --text; one_line
    echo "not a snapshot" > "$dir/text.h5"; expect 3 "text.h5" "$viewer" "$dir/text.h5" --text; one_line
    expect 3 "text.h5" "$viewer" "$dir/text.h5"; one_line
    ;;
  damaged)
    # Every kind of damage: alone it is refused; in a run the other incident is shown, and asking for this one is refused.
    cp "$snapshot" "$dir/whole.h5"
    mv "$dir/story/incidents/step-00000131.r0.json" "$dir/verdict.json"
    "$4" > "$dir/kinds"
    while IFS='|' read -r kind says; do
      cp "$dir/whole.h5" "$snapshot"; "$4" "$snapshot" "$kind" || failures=$((failures + 1))
      expect 3 "$says" "$viewer" "$snapshot" --text; one_line
      expect 3 "step-00000131.r0.h5" "$viewer" "$snapshot" --csv trace; one_line
      expect 0 "warning: .*$says" "$viewer" "$dir/story" --text verdict
      expect 0 "step 90" "$viewer" "$dir/story" --text verdict
      expect 0 "can't be read" "$viewer" "$dir/story" --text runs
      expect 3 "$says" "$viewer" "$dir/story" --text verdict --step 131; one_line
      last="$says"
    done < "$dir/kinds"
    says="$last"  # what reading the end left is empty, and would be found anywhere
    # A flipped byte in the series is one line of ours, and none of the library's when the program ends.
    series="$dir/story/series.r0.h5"; cp "$dir/whole.h5" "$snapshot"; cp "$series" "$dir/series"
    for at in 69 207 700 1000; do
      cp "$dir/series" "$series"; printf '\132' | dd of="$series" bs=1 seek="$at" conv=notrunc 2> /dev/null
      expect 0 "damaged or cut off" "$viewer" "$dir/story" --text runs
      if grep -q "HDF5" "$dir/out"; then echo "FAILED: libhdf5 prints"; cat "$dir/out"; failures=$((failures + 1)); fi
    done
    cp "$dir/series" "$series"; "$4" "$snapshot" "$(tail -1 "$dir/kinds" | cut -d'|' -f1)"
    [ "$(wc -l < "$dir/kinds")" -ge 8 ] || { echo "FAILED: too few kinds of damage"; failures=$((failures + 1)); }
    # Its verdict says what happened, with or without the snapshot.
    cp "$dir/verdict.json" "$dir/story/incidents/step-00000131.r0.json"
    expect 0 "FP16_OVERFLOW" "$viewer" "$dir/story" --text verdict
    expect 0 "warning: .*$says" "$viewer" "$dir/story" --text verdict --step 131
    expect 3 "$says" "$viewer" "$dir/story" --text trace --step 131; one_line
    expect 0 "FP16_OVERFLOW" "$viewer" "$snapshot" --text verdict
    expect 3 "$says" "$viewer" "$snapshot" --text trace; one_line
    mv "$snapshot" "$dir/bad.h5"
    expect 0 "FP16_OVERFLOW" "$viewer" "$dir/story/incidents/step-00000131.r0.json" --text verdict
    expect 0 "not here" "$viewer" "$dir/story" --text verdict --step 131
    mv "$dir/bad.h5" "$snapshot"
    rm "$dir/story/incidents/step-00000131.r0.json"
    rm "$dir/story/incidents/step-00000090.r0.h5"
    expect 3 "$says" "$viewer" "$dir/story" --text verdict; one_line  # nothing is left to show
    expect 0 "weight_norm\|loss" "$viewer" "$dir/story" --csv norms
    # Without any of its files the manifest is left.
    rm "$dir/story/incidents/"*
    expect 0 "Step 131 was not finite" "$viewer" "$dir/story" --text verdict
    expect 0 "Step 90 overflowed" "$viewer" "$dir/story" --text verdict --step 90
    expect 3 "not here" "$viewer" "$dir/story" --text trace; one_line
    ;;
  damaged-pictures)
    unset DISPLAY WAYLAND_DISPLAY
    cp "$snapshot" "$dir/whole.h5"
    cp "$dir/story/incidents/step-00000131.r0.json" "$dir/verdict.json"
    for kind in newer cut loop; do
      cp "$dir/whole.h5" "$snapshot"; "$4" "$snapshot" "$kind" || failures=$((failures + 1))
      cp "$dir/verdict.json" "$dir/story/incidents/step-00000131.r0.json"
      expect 0 "warning: .*step-00000131.r0.h5" "$viewer" "$snapshot" --screenshot "$dir/verdict.png"
      rm "$dir/story/incidents/step-00000131.r0.json"
      expect 3 "step-00000131.r0.h5" "$viewer" "$snapshot" --screenshot "$dir/bad.png"; one_line
      [ ! -e "$dir/bad.png" ] || { echo "FAILED: a picture of nothing"; failures=$((failures + 1)); }
      expect 0 "wrote" "$viewer" "$dir/story" --screenshot "$dir/a.png" --size 800x500
      expect 0 "warning" "$viewer" "$dir/story" --screenshot "$dir/a.png" --size 800x500
    done
    ;;
  without-display)
    unset DISPLAY WAYLAND_DISPLAY
    expect 2 "text" "$viewer" "$dir/story"; one_line
    expect 0 "wrote" "$viewer" "$dir/story" --screenshot "$dir/a.png" --panel norms --size 800x500
    expect 2 "is no size" "$viewer" "$dir/story" --screenshot "$dir/b.png" --size 12
    expect 2 "no theme" "$viewer" "$dir/story" --screenshot "$dir/b.png" --theme pink; one_line
    expect 0 "wrote" "$viewer" "$dir/story" --screenshot "$dir/light.png" --panel norms --size 800x500 --theme light
    cmp -s "$dir/a.png" "$dir/light.png" && { echo "FAILED: the light theme is the dark one"; failures=$((failures + 1)); }
    for layout in overview curves tensors compare; do
      expect 0 "wrote" "$viewer" "$dir/story" --screenshot "$dir/$layout.png" --layout "$layout" --size 1280x720
      [ "$layout" = overview ] || ! cmp -s "$dir/overview.png" "$dir/$layout.png" || { echo "FAILED: $layout is the overview"; failures=$((failures + 1)); }
    done
    expect 3 "/proc/none" "$viewer" "$dir/story" --screenshot /proc/none/b.png; one_line
    for place in "$dir/story/b.png" "$dir/story/incidents/b.png"; do
      expect 2 "nothing is written into a run" "$viewer" "$dir/story" --screenshot "$place"; one_line
      expect 2 "nothing is written into a run" "$viewer" "$snapshot" --screenshot "$place"; one_line
      [ ! -e "$place" ] || { echo "FAILED: a picture in a run"; failures=$((failures + 1)); }
    done
    ;;
  window)
    before="$(find "$dir/story" -type f | sort | xargs cksum | cksum)"
    xvfb-run -a -s "-screen 0 1280x800x24" "$viewer" "$dir/story" --frames 30 > "$dir/out" 2>&1 || { echo "FAILED: the window"; cat "$dir/out"; failures=1; }
    [ -s "$dir/config/nanquest/viewer.ini" ] || { echo "FAILED: the layout was not remembered"; failures=1; }
    xvfb-run -a -s "-screen 0 1280x800x24" "$viewer" "$dir/story" --frames 5 > "$dir/out" 2>&1 || { echo "FAILED: the second time"; cat "$dir/out"; failures=1; }
    # What a person does in it: a larger size that is remembered, a picture of a panel in the working directory.
    mkdir "$dir/saved"
    (cd "$dir/saved" && xvfb-run -a -s "-screen 0 1280x800x24" "$viewer" "$dir/story" --frames 12 --do "Larger" --do "Save the panel as picture") > "$dir/out" 2>&1 || { echo "FAILED: actions"; cat "$dir/out"; failures=1; }
    grep -q "^Size=110$" "$dir/config/nanquest/viewer.ini" || { echo "FAILED: the size was not remembered"; failures=1; }
    head -c 4 "$dir/saved/"story-step131-*.png 2> /dev/null | grep -q "PNG" || { echo "FAILED: no picture"; cat "$dir/out"; ls "$dir/saved"; failures=1; }
    (cd "$dir/story" && xvfb-run -a -s "-screen 0 1280x800x24" "$viewer" . --frames 12 --do "Save the panel as picture") > "$dir/out" 2>&1 || { echo "FAILED: actions in a run"; cat "$dir/out"; failures=1; }
    [ "$(cat "$dir/config/nanquest/recent")" = "$dir/story" ] || { echo "FAILED: recent runs"; cat "$dir/config/nanquest/recent"; failures=1; }
    # How it was left is kept, and not in the run; --fresh keeps nothing.
    desk="$(ls "$dir/state/nanquest/runs/"story-*.json)"
    window() { xvfb-run -a -s "-screen 0 1280x800x24" "$viewer" "$dir/story" --frames 12 "$@" > "$dir/out" 2>&1 || { echo "FAILED: $*"; cat "$dir/out"; failures=1; }; }
    window --do "Layout tensors" --do "Theme light"
    grep -q '"layout": "tensors"' "$desk" && grep -q '"theme": "light"' "$desk" || { echo "FAILED: how it was left"; cat "$desk"; failures=1; }
    cp "$desk" "$dir/desk"; window --fresh --do "Layout compare"
    cmp -s "$desk" "$dir/desk" || { echo "FAILED: --fresh keeps"; failures=1; }
    window
    grep -q '"layout": "tensors"' "$desk" || { echo "FAILED: it was not taken up"; cat "$desk"; failures=1; }
    window --theme dark
    grep -q '"theme": "dark"' "$desk" || { echo "FAILED: --theme"; cat "$desk"; failures=1; }
    window --layout curves
    grep -q '"layout": "curves"' "$desk" || { echo "FAILED: --layout"; cat "$desk"; failures=1; }
    # What is dropped onto it is shown, as it was left; what is no run is said, and the one that is shown stays.
    "$make_run" "$dir/second" > /dev/null
    echo "no run" > "$dir/rubbish"
    xvfb-run -a -s "-screen 0 1280x800x24" "$viewer" "$dir/story" --frames 60 --drop "$dir/rubbish" --drop "$dir/second" > "$dir/out" 2>&1 || { echo "FAILED: drop"; cat "$dir/out"; failures=1; }
    [ "$(head -1 "$dir/config/nanquest/recent")" = "$dir/second" ] || { echo "FAILED: what was dropped is not shown"; cat "$dir/config/nanquest/recent"; failures=1; }
    grep -q rubbish "$dir/config/nanquest/recent" && { echo "FAILED: rubbish was opened"; failures=1; }
    ls "$dir/state/nanquest/runs/"second-*.json > /dev/null 2>&1 || { echo "FAILED: how the second was left"; failures=1; }
    echo "no desk" > "$desk"; window
    grep -q "warning: $desk: desk: not a JSON object" "$dir/out" || { echo "FAILED: a desk that nobody can read"; cat "$dir/out"; failures=1; }
    [ "$before" = "$(find "$dir/story" -type f | sort | xargs cksum | cksum)" ] || { echo "FAILED: the viewer changed the data"; failures=1; }
    ;;
  report)
    unset DISPLAY WAYLAND_DISPLAY
    before="$(find "$dir/story" -type f | sort | xargs cksum | cksum)"
    expect 0 "wrote" "$viewer" "$dir/story" --report "$dir/out.html"
    expect 0 "wrote" "$viewer" "$dir/story" --report "$dir/out.md"
    expect 0 "FP16_OVERFLOW" cat "$dir/out.html"
    expect 0 "FP16._OVERFLOW" cat "$dir/out.md"
    if "$viewer" "$dir/story" --screenshot "$dir/a.png" 2> /dev/null; then
      [ "$(grep -o 'data:image/png;base64,iVBORw0KGgo' "$dir/out.html" | wc -l)" = 6 ] || { echo "FAILED: not three pictures, light and dark"; failures=1; }
      [ "$(grep -o 'prefers-color-scheme: dark)" srcset="data:image/png;base64,[^"]*' "$dir/out.html" | sort -u | wc -l)" = 3 ] || { echo "FAILED: not three dark ones"; failures=1; }
    else
      expect 0 "Without pictures: " cat "$dir/out.html"
    fi
    if command -v node > /dev/null; then
      node "$(dirname "$0")/report_script_test.js" "$dir/out.html" || failures=$((failures + 1))
    fi
    expect 2 "end it in" "$viewer" "$dir/story" --report "$dir/out.pdf"; one_line
    expect 3 "/proc/none" "$viewer" "$dir/story" --report /proc/none/out.md; one_line
    expect 3 "no such file" "$viewer" "$dir/none" --report "$dir/none.md"; one_line
    expect 2 "nothing is written into a run" "$viewer" "$dir/story" --report "$dir/story/out.md"; one_line
    [ "$before" = "$(find "$dir/story" -type f | sort | xargs cksum | cksum)" ] || { echo "FAILED: the viewer changed the data"; failures=1; }
    ;;
  idle)
    # A run that nobody writes: once the first picture has settled nothing is drawn, and hardly anything computed.
    touch -d "3 hours ago" "$dir/story/manifest.json" "$dir/story/series.r0.h5"
    cat > "$dir/timed" <<'EOF'
"$1" "$2" --seconds "$3" 2> "$4/err"; times > "$4/times"; tail -1 "$4/times" | sed 's/.*m\([0-9.]*\)s .*m\([0-9.]*\)s/\1 \2/'
EOF
    timed() { xvfb-run -a -s "-screen 0 1280x800x24" bash "$dir/timed" "$viewer" "$dir/story" "$1" "$dir"; }
    timed 2 > /dev/null  # the layout is remembered from here on
    short="$(timed 2)"; first="$(grep -o '^[0-9]* frames' "$dir/err" | cut -d' ' -f1)"
    long="$(timed 8)"; all="$(grep -o '^[0-9]* frames' "$dir/err" | cut -d' ' -f1)"
    echo "frames in 2 s and in 8 s: $first and $all; seconds of processor, user and system: $short and $long"
    [ -n "$all" ] && [ "$all" -gt 0 ] || { echo "FAILED: nothing was drawn"; failures=1; }
    [ "$all" -le $((first + 4)) ] || { echo "FAILED: frames are drawn while nothing happens"; failures=1; }
    echo "$short $long" | awk '{ idle = ($3 + $4 - $1 - $2) / 6; printf "idle: %.2f %% of a core\n", 100 * idle; exit idle > 0.03 }' ||
      { echo "FAILED: it computes while nothing happens"; failures=1; }
    ;;
esac
exit "$failures"
