#!/usr/bin/env python3
"""Trains a step of each feature of PyTorch with and without the probe, and replays it in a process without Python.

  run.py                     # every feature but the compilers
  run.py --all               # those too
  run.py --only 'sparse'     # those whose name matches
  run.py --all --unwatched   # at level trace too, where no values are looked at while the step runs

The features of one file share a process (program.py). The middle one of each feature's three steps is recorded. Wanted of
each: losses and parameters have the bits of the same program without the probe, no failed op, every output that was
compared equal. Ops that can't be run again are opaque: counted and named.

Exit code: 0 if all of that holds for all, else 1. Rows go to DIR/results.jsonl (--out), in the form of those of
../matrix/run.py: "spec" is "feature/NAME", "watched" and "unwatched" are what nanquest-replay verify says.
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
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import attached  # noqa: E402

SECONDS = 300


def features():
    """Names by group, without importing torch here."""
    code = ("import derivatives, layouts, operators, programs, tensors, json, registry; "
            "print(json.dumps({n: g for n, (m, g) in registry.FEATURES.items()}))")
    out = subprocess.run([sys.executable, "-c", code], cwd=HERE, text=True, capture_output=True, check=True, timeout=SECONDS)
    groups = {}
    for name, group in json.loads(out.stdout.splitlines()[-1]).items():
        groups.setdefault(group, []).append(name)
    return groups


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NANQUEST_") or k == "NANQUEST_TEST_OPS"}
    path = os.pathsep.join(filter(None, [str(attached.PACKAGE), os.environ.get("PYTHONPATH", "")]))
    return dict(clean, PYTHONPATH=path, NANQUEST_ATTACH_LIBRARY=str(attached.LIBRARY), OMP_NUM_THREADS="1",
                PYTHONDONTWRITEBYTECODE="1", **more)


def trained(names, folder, command=()):
    """(results by feature, stderr) of one process."""
    process = subprocess.run([*map(str, command), sys.executable, HERE / "program.py", "result", *names], cwd=folder, text=True,
                             capture_output=True, timeout=SECONDS, env=environment())
    file = folder / "result"
    rows = {r["feature"]: r for r in map(json.loads, file.read_text().splitlines())} if file.exists() else {}
    if process.returncode:
        last = (attached.AttachTest.programs_lines(process) or [""])[-1]
        rows["trouble"] = f"ended with {process.returncode}: {last}"
    return rows, process.stderr


def replayed(file):
    process = subprocess.run([str(attached.BIN / "nanquest-replay"), "verify", file, "--json"], text=True, capture_output=True,
                             timeout=SECONDS)
    try:
        verdict = json.loads(process.stdout)
    except ValueError:
        return {"trouble": f"replay ended with {process.returncode}: {process.stderr.strip()}"}
    ops = attached.ops_of(file)
    verdict["ops"] = len(ops)
    verdict["stands"] = attached.stands(file)
    first = verdict["first_mismatch"]
    verdict["first_mismatch"] = None if first is None else f"op {first} {ops[first][0]}"
    verdict["opaque"] = sorted({name for name, flags in ops
                                if flags & attached.OPAQUE or not name.startswith(("aten::", "nanquest::"))})
    return verdict


def level_rows(kind, names, without, scratch, rows):
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    level = ("watch",) if kind == "watched" else ("trace", "--watch-every", "0")
    command = [sys.executable, "-m", "nanquest", "run", "--run-dir", "run", "--level", *level, "--"]
    seen, err = trained(names, folder, command)
    steps = {n: seen.get(n, {}).get("step", -1) for n in names if "step" in without.get(n, {})}
    off = [line for line in err.splitlines() if line.startswith("nanquest: ") and "off" in line]
    for name, step in steps.items():
        row = rows[name]
        row["bitwise"] = row["bitwise"] and seen.get(name, {}).get("bits") == without[name]["bits"]
        if seen.get(name, {}).get("bits") != without[name]["bits"]:
            row["trouble"].append(f"{kind}: " + seen.get("trouble", "other bits than without the probe"))
        row["trouble"] += [f"{kind}: {line}" for line in off]
        # A program without modules shows only at its update that a new step had begun.
        files = [folder / "run" / "recordings" / f"step-{n:08d}.r0.h5" for n in (step, step + 1)]
        file = next((f for f in files if f.exists()), files[0])
        verdict = replayed(file) if file.exists() else {"trouble": "not recorded"}
        row[kind] = verdict
        if "trouble" in verdict:
            row["trouble"].append(f"{kind}: {verdict['trouble']}")
        elif not verdict["bit_exact"]:
            row["trouble"].append(f"{kind}: {verdict['mismatched']} of {verdict['outputs_compared']} differ, "
                                  f"{verdict['failed_ops']} failed, first {verdict['first_mismatch']}")
    return folder


def run_group(names, kinds, scratch):
    start = time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    without, _ = trained(names, folder)
    rows = {n: {"spec": f"feature/{n}", "trouble": [], "bitwise": True} for n in names}
    for name in names:
        if "step" not in without.get(name, {}):
            rows[name]["trouble"].append("without the probe: " + without.get(name, {}).get("skipped", without.get("trouble", "no result")))
    for kind in kinds:
        level_rows(kind, names, without, scratch, rows)
    for row in rows.values():
        row["seconds"] = round((time.monotonic() - start) / len(names), 2)
    return rows


def report(row):
    counts = ", ".join(f"{row[k].get('outputs_compared', 0)} {k}{' standing' * row[k].get('stands', False)}"
                       for k in ("watched", "unwatched") if k in row)
    opaque = sorted({op for k in ("watched", "unwatched") for op in row.get(k, {}).get("opaque", [])})
    print(f"{'FAIL' if row['trouble'] else 'ok  '} {row['spec'][8:]:55} {counts}"
          + (f"; opaque: {', '.join(opaque)}" if opaque else "") + "".join(f"\n       {t}" for t in row["trouble"]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="the compilers too")
    parser.add_argument("--unwatched", action="store_true", help="at level trace too")
    parser.add_argument("--only", metavar="REGEX", default="", help="features whose name matches")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("features"), help="folder of results.jsonl")
    parser.add_argument("--keep", action="store_true", help="keep the recordings")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kinds = ("watched", "unwatched") if options.unwatched else ("watched",)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-features-"))
    groups = [[n for n in names if re.search(options.only, n)] for group, names in features().items()
              if options.all or options.only or group != "compiler"]
    bad = total = 0
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, open(options.out / "results.jsonl", "w") as out:
            for rows in pool.map(lambda names: run_group(names, kinds, scratch), filter(None, groups)):
                for row in rows.values():
                    report(row)
                    total += 1
                    bad += bool(row["trouble"])
                    print(json.dumps(row), file=out, flush=True)
    finally:
        if options.keep:
            print(f"kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{total - bad} of {total} features came back bit for bit and changed nothing")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
