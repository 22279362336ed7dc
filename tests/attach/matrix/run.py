#!/usr/bin/env python3
"""Trains each combination with and without the probe, and replays one recorded step of each in a process without Python.

  run.py                        # the fast part
  run.py --all                  # every combination
  run.py --only 'gpt2/.*/bf16/' # those that match
  run.py --all --table          # and writes the result into docs/evidence.md, between its markers
  run.py --device nqdev         # on the accelerator made for tests (NANQUEST_DEVICE_LIBRARY); replayed on the CPU

A combination is MODEL/OPTIMIZER/PRECISION/HABITS. Each is trained at level watch, where every written output of step 1 is
compared, and at level trace, where what survived of step 4 is. Wanted of each: all of it equal, no op failed, no incident,
as many steps seen as were made, recomputation told from a new step, and weights equal to those of the same program without
the probe after every step. What PyTorch itself can't do on this machine must fail in the same way under the probe.

Exit code: 0 if all of that holds for all, else 1. Results are kept in DIR/results.jsonl (--out), which --resume reads.
"""

import argparse
import concurrent.futures
import importlib.util
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
sys.path[:0] = [str(HERE.parent), os.environ.get("NANQUEST_TEST_PACKAGES", "")]

import attached  # noqa: E402
import combinations  # noqa: E402
import models  # noqa: E402
import table  # noqa: E402

STEPS = 5
LEVELS = {"watch": 1, "trace": 4}  # which step is recorded; the first three are watched at level trace too
MEMORY_KIB, SECONDS, SECONDS_EACH = 2 << 20, 200, 60  # of a process, and more for each combination in it


def environment():
    """A program's environment: no probe, no network, one thread."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NANQUEST_")}
    path = filter(None, [os.environ.get("NANQUEST_TEST_PACKAGES"), os.environ.get("PYTHONPATH")])
    return dict(clean, PYTHONPATH=os.pathsep.join(path), OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")


def memory_kib(pid):
    """Of a process and its children: the program is one of `nanquest run`."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return (int(found.group(1)) if found else 0) + sum(map(memory_kib, children))


def finished(command, folder, combinations_in_it=1, **more):
    """(exit code or why it was ended, stdout, stderr) of a program within the limits of time and memory."""
    seconds = SECONDS + SECONDS_EACH * combinations_in_it
    memory = MEMORY_KIB * (4 if "cuda" in map(str, command) else 1)  # CUDA's libraries alone are some 3 GiB
    with open(folder / "stdout", "w+") as out, open(folder / "stderr", "w+") as err:
        process = subprocess.Popen([str(c) for c in command], cwd=folder, stdout=out, stderr=err, env={**environment(), **more})
        deadline, why = time.monotonic() + seconds, None
        while process.poll() is None:
            if time.monotonic() > deadline:
                why = f"took more than {seconds} s"
            elif memory_kib(process.pid) > memory:
                why = f"took more than {memory >> 20} GiB"
            if why:
                process.kill()
                process.wait()
                break
            time.sleep(0.05)
        out.seek(0)
        err.seek(0)
        return why or process.returncode, out.read(), err.read()


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def trained(specs, folder, device, command=(), **more):
    """Results of program.py by combination, and what went wrong ("" if nothing)."""
    if "NANQUEST_DEVICE_LIBRARY" in os.environ:
        more["NANQUEST_DEVICE_LIBRARY"] = os.environ["NANQUEST_DEVICE_LIBRARY"]
    program = [sys.executable, HERE / "program.py", "result", STEPS, device, *specs]
    code, _, err = finished([*command, *program], folder, len(specs), **more)
    lines = (folder / "result").read_text().splitlines() if (folder / "result").exists() else []
    results = {r["spec"]: r for r in map(json.loads, lines)}
    return results, err, "" if code == 0 else f"ended with {code}: {last_line(err)}"


def plain(specs, scratch, device):
    """The programs without the probe: those of one model share a process."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    results, _, trouble = trained(specs, folder, device)
    shutil.rmtree(folder)
    return results, trouble


def replayed(file, folder):
    """What nanquest-replay says of a recording: the verify verdict, and the names of opaque ops."""
    code, out, err = finished([attached.BIN / "nanquest-replay", "verify", file, "--json"], folder)
    try:
        verdict = json.loads(out)
    except ValueError:
        return {"trouble": f"replay ended with {code}: {last_line(err)}"}
    ops = attached.ops_of(file)
    verdict["ops"] = len(ops)
    verdict["stands"] = attached.stands(file)
    first = verdict["first_mismatch"]
    verdict["first_mismatch"] = None if first is None else f"op {first} {ops[first][0]}"
    verdict["recomputed"] = sum(flags & attached.RECOMPUTED != 0 for _, flags in ops)
    verdict["opaque"] = sorted({name for name, flags in ops if flags & attached.OPAQUE})
    return verdict


def observe(group, without, scratch, options):
    """Combinations of one model and precision under the probe, one after the other in a process: its rows."""
    possible = [spec for spec in group if "error" not in without.get(spec, {})]
    rows = {spec: {"spec": spec, "trouble": [], "seconds": 0} for spec in group}
    for spec in set(group) - set(possible):
        rows[spec]["impossible"] = without[spec]["error"]
    for level, step in LEVELS.items() if possible else ():
        folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
        start = time.monotonic()
        asked = {spec: i * STEPS + step for i, spec in enumerate(possible)}
        command = [sys.executable, "-m", "nanquest", "run", "--level", level, "--watch-every", "0", "--run-dir", "run", "--record-steps",
                   ",".join(map(str, asked.values())), "--"]
        package = os.pathsep.join([str(attached.PACKAGE), environment()["PYTHONPATH"]])
        results, err, trouble = trained(possible, folder, options.device, command, PYTHONPATH=package,
                                        NANQUEST_ATTACH_LIBRARY=str(attached.LIBRARY))
        seconds = round((time.monotonic() - start) / len(possible), 1)
        trouble = [trouble] if trouble else []
        if "off" in err:
            trouble.append(next(line for line in err.splitlines() if "off" in line))
        if list((folder / "run" / "incidents").glob("*.h5")):
            trouble.append("an incident was seen: " + err.splitlines()[0])
        if (seen := steps_seen(folder / "run")) != STEPS * len(possible):
            trouble.append(f"{seen} steps were seen of {STEPS * len(possible)}")
        if trouble and len(possible) > 1:  # one by one, to see whose trouble it is
            shutil.rmtree(folder)
            return [row for spec in group for row in observe([spec], without, scratch, options)]
        for spec, number in asked.items():
            row = rows[spec]
            row["seconds"] = round(row["seconds"] + seconds, 1)
            row["trouble"] += [f"{level}: {line}" for line in trouble]
            row[level] = judged(spec, level, folder / "run" / "recordings" / f"step-{number:08d}.r0.h5", folder, err, row)
            row[level]["bitwise"] = spec in without and results.get(spec, {}).get("weights") == without[spec]["weights"]
            if not row[level]["bitwise"]:
                row["trouble"].append(f"{level}: the weights are not those of the same program without the probe")
        if options.keep and any(row["trouble"] for row in rows.values()):
            print(f"  kept: {folder}", flush=True)
        else:
            shutil.rmtree(folder)
    return list(rows.values())


def judged(spec, level, file, folder, err, row):
    """Replay's verdict of one recording; what is wrong with it goes to the row."""
    verdict = replayed(file, folder) if file.exists() else {"trouble": "not recorded: " + last_line(err)}
    if "trouble" in verdict:
        row["trouble"].append(f"{level}: {verdict['trouble']}")
        return verdict
    if not verdict["bit_exact"]:
        row["trouble"].append(f"{level}: {verdict['mismatched']} of {verdict['outputs_compared']} differ, "
                              f"{verdict['failed_ops']} failed, first {verdict['first_mismatch']}")
    if verdict["basis"] != ("every_output" if level == "watch" else "survivors"):
        row["trouble"].append(f"{level}: compared were {verdict['basis']}")
    if ("checkpoint" in spec) != (verdict["recomputed"] > 0):
        row["trouble"].append(f"{level}: {verdict['recomputed']} ops are tagged as run again")
    return verdict


def steps_seen(run):
    import h5py
    try:
        with h5py.File(run / "series.r0.h5") as series:
            return len(series["history/scalars/values"])
    except (OSError, KeyError):
        return 0


def report(row):
    if "impossible" in row and not row["trouble"]:
        print(f"none {row['spec']:48} {row['impossible'][:90]}", flush=True)
        return
    watched, survived = (row.get(level, {}).get("outputs_compared", 0) for level in LEVELS)
    line = f"{'ok  ' if not row['trouble'] else 'FAIL'} {row['spec']:48} {watched:6} + {survived:4} outputs{' standing' * row.get('trace', {}).get('stands', False):9} {row['seconds']:5} s"
    print(line + "".join(f"\n       {t}" for t in row["trouble"]), flush=True)


def run_all(specs, options, done):
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="nanquest-matrix-"))
    by_model, groups = {}, {}
    for spec in specs:
        model, _, precision, _ = spec.split("/")
        key = ("all", "") if options.one_process else (model, precision)
        by_model.setdefault(key[0], []).append(spec)
        groups.setdefault(key, []).append(spec)
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            alone = {model: pool.submit(plain, group, scratch, options.device) for model, group in by_model.items()}

            def one(key):
                without, trouble = alone[key[0]].result()
                if trouble:
                    print(f"the program without the probe {trouble}", flush=True)
                return observe(groups[key], without, scratch, options)

            for future in concurrent.futures.as_completed([pool.submit(one, key) for key in groups]):
                for row in future.result():
                    report(row)
                    done[row["spec"]] = row
                    with open(options.out / "results.jsonl", "a", encoding="utf-8") as file:
                        print(json.dumps(row), file=file)
    finally:
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)


def runnable(specs):
    """Those whose packages are installed; the others are named."""
    missing = {m for m in models.NAMES for p in models.packages(m) if importlib.util.find_spec(p) is None}
    left_out = sorted({s.split("/")[0] for s in specs} & missing)
    if left_out:
        print(f"left out, because transformers or torchvision is not installed: {', '.join(left_out)}")
    return [s for s in specs if s.split("/")[0] not in missing]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every combination, not only the fast part")
    parser.add_argument("--only", metavar="REGEX", help="those of all whose name matches; or one of any habits, written out")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="where the programs train (default: %(default)s)")
    parser.add_argument("--one-process", action="store_true", help="one process for all of them, as for the fast part")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("matrix"), help="folder of results.jsonl")
    parser.add_argument("--resume", action="store_true", help="run only what has not passed in results.jsonl")
    parser.add_argument("--keep", action="store_true", help="keep the files of what failed")
    parser.add_argument("--table", action="store_true", help="write the table of results.jsonl into docs/evidence.md")
    options = parser.parse_args()
    options.one_process = options.one_process or not (options.all or options.only)
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    for needed in (attached.LIBRARY, attached.BIN / "nanquest-replay"):
        if not needed.exists():
            parser.error(f"{needed} is missing; build nanquest_attach_python and nanquest-replay first")
    specs = list(combinations.all_of_them() if options.all or options.only
                 else combinations.FAST if options.device == "cpu" else combinations.ON_DEVICE)
    if options.only:
        specs = [s for s in specs if re.search(options.only, s)] or [options.only]
    specs = runnable(specs)
    results = options.out / "results.jsonl"
    done = {}
    if options.resume and results.exists():
        done = {row["spec"]: row for row in map(json.loads, results.read_text().splitlines())}
    elif results.exists():
        results.unlink()
    run_all([s for s in specs if s not in done or done[s]["trouble"]], options, done)
    bad = [s for s in specs if done.get(s, {"trouble": ["not run"]})["trouble"]]
    impossible = sum("impossible" in done.get(s, {}) for s in specs if s not in bad)
    print(f"{len(specs) - len(bad) - impossible} of {len(specs) - impossible} combinations came back bit for bit and changed nothing"
          + (f"; {impossible} more PyTorch can't do here" if impossible else ""))
    if options.table:
        table.write(done)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
