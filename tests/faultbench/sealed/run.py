#!/usr/bin/env python3
"""Runs a part that somebody else wrote (README.md): unpacks it, records each program by `nanquest run`, replays the first incident,
compares with the truth.

  run.py third --packages DIR                  # all programs and look-alikes at level trace
  run.py third --level watch --only 'pool_.*'  # names that match as a whole

DIR holds what requirements.txt of the archive lists: pip install --no-deps --target DIR -r OUT/requirements.txt. Results go to
OUT/LEVEL/results.json (with the verdicts beside them), a table to stdout. Exit code: 0, 2 on bad usage. The figures are what they are:
docs/evidence.md says when they were first taken.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import programs  # noqa: E402

MEASURES = ("found", "step", "operation", "module", "phase", "origin", "cause", "wrong", "fix", "bit_exact")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz")))
    parser.add_argument("--level", choices=("guard", "trace", "watch"), default="trace")
    parser.add_argument("--only", metavar="REGEX", default=".*")
    parser.add_argument("--packages", type=pathlib.Path, help="folder with the packages that the programs import")
    parser.add_argument("--out", type=pathlib.Path, help="(default: build/sealed/PART)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=300, help="limit of each program and each replay")
    options = parser.parse_args()
    options.out = (options.out or programs.ROOT / "build" / "sealed" / options.part).resolve()
    for needed in (programs.LIBRARY, programs.BIN / "nanquest-replay"):
        if not needed.exists():
            parser.error(f"{needed} is missing; build nanquest_attach_python and nanquest-replay first")
    return options


def plain(name):
    return (name or "").removeprefix("aten::")


def marks(truth, said, steps):
    """{measure: True | False} of one failing program. `said`: score.said_of, None without a verdict; `steps`: of its incidents."""
    if said is None:
        return {**dict.fromkeys(MEASURES, False), "found": bool(steps)}
    operations = {plain(name) for name in (truth["operation"], *truth["operation_alternatives"])}
    right = said["cause"] in (truth["cause"], *truth["cause_alternatives"])
    found = {
        "found": True,
        "step": said["step"] in (truth["step"], truth["optimizer_call"]),
        "operation": said["op"] in operations,
        "module": said["module"] == truth["module"],
        "phase": said["phase"] in (truth["phase"], *truth["phase_alternatives"]),
        "origin": said["origin"] == truth["origin"],
        "cause": right,
        "wrong": not right and said["cause"] not in (None, "", "UNKNOWN"),
        "bit_exact": bool(said["bit_exact"]),
    }
    return {**found, "fix": said["fix"] is not None} if truth["fixable"] else found


def played(options, folder, name):
    """(steps of its incidents, said_of or None, what went wrong)."""
    out = options.out / options.level / pathlib.Path(name).stem
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    environment = programs.environment()
    if options.packages:
        environment["PYTHONPATH"] += os.pathsep + str(options.packages.resolve())
    command = [sys.executable, "-m", "nanquest", "run", "--level", options.level, "--run-dir", out / "run", "--", sys.executable, folder / pathlib.Path(name).name]
    with open(out / "said.txt", "w") as said:
        try:
            subprocess.run(command, cwd=out, stdout=said, stderr=said, env=environment, timeout=options.seconds, check=False)
        except subprocess.TimeoutExpired:
            return [], None, f"took more than {options.seconds} s"
    if not (out / "run" / "manifest.json").exists():
        return [], None, "nothing was observed: " + (out / "said.txt").read_text(errors="replace").strip()[-200:]
    result = programs.replay_first({"broken": "", "said": None}, options, out)
    return result["incidents"], result["said"], result["broken"]


def row_of(options, truth):
    steps, said, broken = played(options, options.out / "programs", truth["file"])
    row = {"file": truth["file"], "broken": broken, "incidents": steps, "said": said, "marks": marks(truth, said, steps)}
    wrong = [m for m, right in row["marks"].items() if right == (m == "wrong")]
    got = {name: said[name] for name in ("step", "phase", "op", "module", "origin", "cause")} if said else steps
    print(f"{truth['file']}: " + (f"{', '.join(wrong)}; said {got} {broken}" if wrong else "right"), file=sys.stderr, flush=True)
    return row


def table(rows, healthy):
    lines = []
    for measure in MEASURES:
        known = [row["marks"][measure] for row in rows if measure in row["marks"]]
        lines.append(f"{measure:10} {sum(known):3} of {len(known)}")
    alarms = [row["file"] for row in healthy if row["incidents"] or row["broken"]]
    return "\n".join([*lines, f"alarms     {len(alarms):3} of {len(healthy)} {' '.join(alarms)}"])


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    with tarfile.open(HERE / f"{options.part}.tar.xz") as archive:
        archive.extractall(options.out, filter="data")
    chosen = [t for t in json.loads((options.out / "truth.json").read_text()) if re.fullmatch(options.only, pathlib.Path(t["file"]).stem)]
    calm = [t["file"] for t in json.loads((options.out / "lookalikes.json").read_text()) if re.fullmatch(options.only, pathlib.Path(t["file"]).stem)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = [*pool.map(lambda truth: row_of(options, truth), chosen)]
        healthy = [dict(zip(("incidents", "said", "broken"), found), file=name)
                   for name, found in zip(calm, pool.map(lambda name: played(options, options.out / "lookalikes", name), calm))]
    (options.out / options.level).mkdir(parents=True, exist_ok=True)
    (options.out / options.level / "results.json").write_text(json.dumps({"programs": rows, "lookalikes": healthy}, indent=1))
    print(table(rows, healthy))
    return 0


if __name__ == "__main__":
    sys.exit(main())
