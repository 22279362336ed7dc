#!/usr/bin/env python3
"""Holds the verdicts of one nanquest-replay against those that another one gave of the same files, field by field.

  compare.py REPLAY SNAPSHOTS VERDICTS --write    # keep REPLAY's verdict of every SNAPSHOTS/NAME.h5 as VERDICTS/NAME.json
  compare.py REPLAY SNAPSHOTS VERDICTS            # compare REPLAY's verdicts with those kept, and print what differs

Nothing is written beside the snapshots. Left out of the comparison: where the file lies, and durations. --ignore leaves out
more, for what was changed on purpose: a regular expression over a field's whole name, as `evidence[0].limit`.

Exit code: 0 if all are equal, else 1; 2 for wrong usage.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

DURATION = re.compile(r"\b\d+(\.\d+)?(e[+-]?\d+)? ?(ms|s|seconds?|minutes?)\b")


def asked(replay, file):
    """What `replay` says of a file: its exit code, and the verdict or the error."""
    process = subprocess.run([replay, file, "--json", "--no-files", "-q"], capture_output=True, text=True,
                             env=dict(os.environ, OMP_NUM_THREADS="1"))
    answer = {"exit_code": process.returncode}
    try:
        return {**answer, "verdict": json.loads(process.stdout)}
    except ValueError:
        return {**answer, "error": process.stderr.strip()}


def fields(value, name=""):
    """(name, value) of everything that is no dictionary and no list; of those that are empty too."""
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from fields(below, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value:
        for i, below in enumerate(value):
            yield from fields(below, f"{name}[{i}]")
    else:
        yield name, value


def comparable(answer, folder, ignored):
    """Fields by name, without paths and durations."""
    verdict = dict(answer.get("verdict") or {})
    verdict.pop("snapshot", None)
    every = dict(fields({"exit_code": answer["exit_code"], "error": answer.get("error"), **verdict}))

    def plain(value):
        return DURATION.sub("(duration)", value.replace(f"{folder}/", "")) if isinstance(value, str) else value
    return {name: plain(value) for name, value in every.items() if not (ignored and re.fullmatch(ignored, name))}


def table_of(before, after):
    """(field, before, after) of all that differs; a field that one lacks is "(none)"."""
    names = [*before, *(name for name in after if name not in before)]
    rows = [(name, before.get(name, "(none)"), after.get(name, "(none)")) for name in names]
    return [row for row in rows if row[1] != row[2] or type(row[1]) is not type(row[2])]


def show(file, rows, width):
    print(f"{file.name}: {len(rows)} fields differ")
    for name, before, after in rows:
        print(f"  {name}\n    before: {str(before)[:width]}\n    after:  {str(after)[:width]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("replay", type=pathlib.Path, help="a nanquest-replay program")
    parser.add_argument("snapshots", type=pathlib.Path, help="folder of *.h5")
    parser.add_argument("verdicts", type=pathlib.Path, help="folder of the verdicts to compare with")
    parser.add_argument("--write", action="store_true", help="write the verdicts in place of comparing them")
    parser.add_argument("--only", metavar="REGEX", default=".*", help="files whose whole name matches")
    parser.add_argument("--ignore", metavar="REGEX", help="fields that may differ")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time (default: %(default)s)")
    parser.add_argument("--width", type=int, default=300, help="characters of a value that are shown (default: %(default)s)")
    options = parser.parse_args()
    files = [f for f in sorted(options.snapshots.glob("*.h5"))
             if not f.name.endswith(".replay.h5") and re.fullmatch(options.only, f.name)]
    if not files or not options.replay.exists():
        parser.error(f"no *.h5 in {options.snapshots}" if options.replay.exists() else f"{options.replay} is missing")
    options.verdicts.mkdir(parents=True, exist_ok=True)
    differ, fields_named = 0, {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for file, answer in zip(files, pool.map(lambda file: asked(options.replay.resolve(), file), files)):
            kept = options.verdicts / f"{file.stem}.json"
            if options.write:
                kept.write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")
                continue
            if not kept.exists():
                rows = [("verdict", "(not kept)", "")]
            else:
                before = json.loads(kept.read_text(encoding="utf-8"))
                rows = table_of(*(comparable(a, options.snapshots, options.ignore) for a in (before, answer)))
            if rows:
                differ += 1
                show(file, rows, options.width)
            for name, *_ in rows:
                general = re.sub(r"\[\d+\]", "[]", name)
                fields_named[general] = fields_named.get(general, 0) + 1
    for name, count in sorted(fields_named.items(), key=lambda item: -item[1]):
        print(f"{count:6} × {name}")
    print(f"{len(files)} verdicts {'written' if options.write else f'compared, {differ} differ'}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
