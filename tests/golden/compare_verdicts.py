#!/usr/bin/env python3
"""Verdicts of two builds of nanquest-replay on the same files, field by field.

usage: compare_verdicts.py OLD_REPLAY NEW_REPLAY [FILE…]      (default: the snapshots of tests/golden)

Prints each field that differs, and at the end how many files gave the same verdict. Exit: 0 all alike, 1 some differ.
Seconds and versions are left out: they are not part of a diagnosis.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent
LEFT_OUT = re.compile(r"(^|\.)(seconds|elapsed|version|versions|created)($|\.)")


def fields(value, path=""):
    """{"culprit.op": …}: each leaf by its path."""
    if isinstance(value, dict):
        inside = ((f"{path}.{key}" if path else key, each) for key, each in value.items())
    elif isinstance(value, list):
        inside = ((f"{path}[{at}]", each) for at, each in enumerate(value))
    else:
        return {path: value}
    return {leaf: each for name, part in inside for leaf, each in fields(part, name).items()}


def verdict(program, file):
    """The verdict's fields; without one the exit code and the error."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([program, "-q", "--json", "--no-files", "diagnose", file], cwd=folder, text=True, capture_output=True, timeout=600)
    try:
        told = fields(json.loads(made.stdout))
    except ValueError:
        return {"exit": made.returncode, "error": made.stderr.strip()}
    return {name: value for name, value in told.items() if not LEFT_OUT.search(name)} | {"exit": made.returncode}


def main():
    old, new, *files = sys.argv[1:]
    files = files or sorted(str(file) for file in GOLDEN.rglob("*.h5") if not file.name.endswith(".replay.h5"))
    alike = 0
    for file in files:
        before, after = verdict(old, file), verdict(new, file)
        different = [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
        alike += not different
        if different:
            print(file, flush=True)
        for name in different:
            print(f"  {name}: {before.get(name)!r} -> {after.get(name)!r}", flush=True)
    print(f"{alike} of {len(files)} files gave the same verdict")
    return alike != len(files)


if __name__ == "__main__":
    sys.exit(main())
