#!/usr/bin/env python3
"""Plants one fault in a model of the matrix, records it, replays it, and compares the verdict with the truth of cases.py.

  try_faults.py                    # every case, at level watch and at level trace
  try_faults.py --few              # those of the ordinary tests
  try_faults.py --only 'weight.*'  # those whose name matches
  try_faults.py --keep DIR         # and keeps each incident's file there, as planted-CASE.LEVEL.h5
  try_faults.py --evidence         # tries fixes too, and ends with how often a verdict with such evidence was right: the
                                   # counts that replay/verdict/confidence.h is made of

Compared are step, op, module, phase, origin and cause, and that the step came back bit for bit; of an innocent case, that
no incident was written. A case that is known to be judged wrong (Case.known) must still be: when it is right, it fails too
and says that its mark has to go.

Exit code: 0 if all is as the list says, else 1.
"""

import argparse
import collections
import importlib.util
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "matrix"), str(HERE)]

import run as matrix  # noqa: E402, of the matrix: programs within limits of time and memory

import attached  # noqa: E402
import cases  # noqa: E402
import models  # noqa: E402


def recorded(case, level, folder):
    """(the file of the first incident or None, what went wrong)."""
    command = [sys.executable, HERE / "fault_program.py", case.name, level, folder / "run"]
    package = f"{attached.PACKAGE}:{matrix.environment()['PYTHONPATH']}"
    code, _, err = matrix.finished(command, folder, PYTHONPATH=package, NANQUEST_ATTACH_LIBRARY=str(attached.LIBRARY))
    if code != 0 or "the probe is off" in err:
        return None, f"the program ended with {code}: {matrix.last_line(err)}"
    files = sorted((folder / "run" / "incidents").glob("step-*.h5"))
    return (files[0] if files else None), ""


def evidence(verdict):
    """What speaks for a verdict, of the kinds that replay/verdict/confidence.h counts; "" of one that names no cause."""
    if verdict.get("cause") in (None, "UNKNOWN"):
        return ""
    if not verdict["reproduction"]["bit_exact"]:
        return "not exact"
    return "verified fix" if verdict.get("fix") else "explained"


def said(file, folder, fixes):
    """(what the verdict says of all that the truth is about, its evidence, what went wrong)."""
    command = [attached.BIN / "nanquest-replay", file, "--json", "--no-files"] + ([] if fixes else ["--no-fixes"])
    code, out, err = matrix.finished(command, folder)
    try:
        verdict = json.loads(out)
    except ValueError:
        return {}, "", f"replay ended with {code}: {matrix.last_line(err)}"
    culprit = verdict.get("culprit") or {}
    return {"step": verdict["step"], "op": culprit.get("op"), "module": culprit.get("module"), "phase": verdict.get("phase"),
            "origin": verdict.get("origin"), "cause": verdict.get("cause"),
            "bit_exact": verdict["reproduction"]["bit_exact"]}, evidence(verdict), ""


def differences(truth, verdict):
    if not truth or not verdict:
        return [] if truth == verdict else ["an incident where nothing is wrong: " + str(verdict) if verdict else "no incident"]
    return [f"{key} is {verdict[key]!r}, not {truth[key]!r}" for key in truth if verdict[key] != truth[key]]


def judged(case, level, options, counts):
    """(word for the report, line for the report). Adds to `counts`: evidence -> [verdicts that were right, all]."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-planted-"))
    try:
        file, trouble = recorded(case, level, folder)
        verdict = {}
        if file is not None:
            if options.keep:
                shutil.copy(file, options.keep / f"planted-{case.name}.{level}.h5")
            verdict, seen, trouble = said(file, folder, options.evidence)
            if seen and case.op:
                counts[seen][0] += not differences(case.truth(), verdict)
                counts[seen][1] += 1
    finally:
        shutil.rmtree(folder)
    if trouble:
        return "FAIL", trouble
    wrong, known = differences(case.truth(), verdict), case.known.get(level)
    if known and not wrong:
        return "FAIL", f"is right now: take its mark {level!r} off Case.known ({known})"
    if known:
        return "known", f"{'; '.join(wrong)} ({known})"
    return ("FAIL", "; ".join(wrong)) if wrong else ("ok", "")


def chosen(options):
    """(case, level) of those asked for whose packages are installed."""
    asked = [c for c in cases.ALL if (c.few or not options.few) and re.fullmatch(options.only, c.name)]
    missing = {c.name for c in asked for package in models.packages(c.spec.split("/")[0])
               if importlib.util.find_spec(package) is None}
    if missing:
        print(f"left out, because transformers or torchvision is not installed: {', '.join(sorted(missing))}")
    return [(c, level) for c in asked if c.name not in missing for level in ((c.few,) if options.few else c.levels)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--few", action="store_true", help="only those of the ordinary tests")
    parser.add_argument("--only", metavar="REGEX", default=".*", help="only cases whose whole name matches")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="keep the incidents' files there")
    parser.add_argument("--evidence", action="store_true", help="try fixes too, and count how often which evidence was right")
    options = parser.parse_args()
    for needed in (attached.LIBRARY, attached.BIN / "nanquest-replay"):
        if not needed.exists():
            parser.error(f"{needed} is missing; build nanquest_attach_python and nanquest-replay first")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    count = {"ok": 0, "known": 0, "FAIL": 0}
    counts = collections.defaultdict(lambda: [0, 0])
    for case, level in chosen(options):
        start = time.monotonic()
        word, line = judged(case, level, options, counts)
        count[word] += 1
        print(f"{word:5} {case.name:22} {level:5} {time.monotonic() - start:5.1f} s  {line}", flush=True)
    if options.evidence:
        print("right by evidence: " + ", ".join(f"{seen} {right} of {n}" for seen, (right, n) in sorted(counts.items())))
    print(f"{count['ok']} as the truth says, {count['known']} known to be judged wrong, {count['FAIL']} not as the list says")
    return 1 if count["FAIL"] or not sum(count.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
