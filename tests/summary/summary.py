#!/usr/bin/env python3
"""What a run of ctest took, and what failed in it: `summary.py BUILD_FOLDER [JUNIT_FILE]` (default: BUILD_FOLDER/tests.xml).

Prints the slowest tests, the sum by label, and of each test that failed the end of its output, without what GoogleTest says of cases
that passed. Times are those of the clock; tests ran beside each other.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

SLOWEST, LINES, COLUMNS = 20, 40, 400
RAN, PASSED = re.compile(r"\[ RUN      \] (\S+)"), re.compile(r"\[       OK \] (\S+) \(")
OF_NO_CASE = re.compile(r"\[(----------|==========)\] |\[  PASSED  \] ")


def labels_of(build):
    """{test: [label, …]}, as ctest knows them."""
    told = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
    found = {}
    for test in json.loads(told)["tests"]:
        found[test["name"]] = next((each["value"] for each in test.get("properties", []) if each["name"] == "LABELS"), [])
    return found


def without_passed_cases(text):
    """GoogleTest's output without the cases that passed; other output as it is."""
    kept = []
    for line in text.splitlines():
        if not line.strip() or OF_NO_CASE.match(line):
            continue
        if passed := PASSED.match(line):
            begun = [at for at, other in enumerate(kept) if (ran := RAN.match(other)) and ran[1] == passed[1]]
            del kept[begun[-1] if begun else len(kept):]
        else:
            kept.append(line)
    return kept


def summary(junit, labels):
    """The lines to be printed. `junit`: text of the file."""
    cases = xml.fromstring(junit).findall("testcase")
    seconds = {case.get("name"): float(case.get("time") or 0) for case in cases}
    lines = [f"the {min(SLOWEST, len(cases))} slowest of {len(cases)} tests, in seconds:"]
    lines += [f"{seconds[name]:8.1f}  {name}" for name in sorted(seconds, key=seconds.get, reverse=True)[:SLOWEST]]
    sums = collections.Counter()
    for name, taken in seconds.items():
        sums.update({label: taken for label in labels.get(name, [])})
    lines += [f"the sum by label, of {sum(seconds.values()):.0f} s in all:"]
    lines += [f"{taken:8.1f}  {label}" for label, taken in sums.most_common()]
    for case in cases:
        if case.get("status") == "fail":
            shown = without_passed_cases(case.findtext("system-out") or "")
            lines += [f"failed: {case.get('name')} after {seconds[case.get('name')]:.1f} s"]
            lines += [f"  {line[:COLUMNS]}" for line in shown[-LINES:]]
    return lines


def main():
    build = pathlib.Path(sys.argv[1])
    file = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else build / "tests.xml"
    print("\n".join(summary(file.read_text(errors="replace"), labels_of(build))))


if __name__ == "__main__":
    main()
