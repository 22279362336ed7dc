#!/usr/bin/env python3
"""Plants a fault, builds, and expects the test of its guarantee to fail: `mutate.py [--only REGEX] [--check] [--build FOLDER]`.

Each row of mutations.py in turn: the text is changed in the working tree, its target is built, its test is run by ctest, and the text
is put back, whatever happens. --only: rows whose file or test matches. --check: nothing is changed; every text must be found, once.
Prints "found" or "NOT FOUND" for each. Exit code 1 if a fault is not found, or a text is not there.
"""

import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "probe" / "attach" / "python" / "nanquest"
sys.path.insert(0, str(HERE))

from mutations import MUTATIONS  # noqa: E402


def file_of(name):
    """The one file that a row means; None if there is none, or several."""
    found = [ROOT / name] if "/" in name else list(PACKAGE.rglob(name))
    return found[0] if len(found) == 1 and found[0].is_file() else None


def trouble_of(name, text):
    """Why a row can't be tried; "" if it can."""
    if (file := file_of(name)) is None:
        return f"{name}: there is no such file, or more than one"
    count = file.read_text(encoding="utf-8").count(text)
    return "" if count == 1 else f"{name}: found {count} times, not once: {text}"


def outcome_of(row, build):
    """What became of a planted fault."""
    name, text, instead, targets, test, _ = row
    file = file_of(name)
    before = file.read_bytes()
    try:
        file.write_bytes(before.replace(text.encode(), instead.encode()))
        if targets and subprocess.run(["cmake", "--build", build, "--target", *targets.split()], capture_output=True).returncode:
            return "does not compile"
        ran = subprocess.run(["ctest", "--test-dir", build, "-R", f"^({test})$", "--no-tests=error"], capture_output=True, text=True)
        if "No tests were found" in ran.stdout + ran.stderr:
            return "has no test of that name"
        return "found" if ran.returncode else "NOT FOUND"
    finally:
        file.write_bytes(before)
        if targets:
            subprocess.run(["cmake", "--build", build, "--target", *targets.split()], capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", default=str(ROOT / "build"), metavar="FOLDER")
    options = parser.parse_args()
    rows = [row for row in MUTATIONS if re.search(options.only, row[0]) or re.search(options.only, row[4])]
    wrong = 0
    for row in rows:
        outcome = trouble_of(row[0], row[1]) or ("" if options.check else outcome_of(row, options.build))
        wrong += outcome not in ("", "found")
        if outcome:
            print(f"{outcome:10} {row[5]:6} {row[4]:40} {row[0]}: {row[1]}", flush=True)
    print(f"{len(rows) - wrong} of {len(rows)} as they should be")
    return 1 if wrong or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
