"""Replay of made spikes (made.py), scored against their truth.

    run.py [--few] [--seeds FIRST LAST] [--kinds KIND …] [--models MODEL …] [--no-tape] [--out FILE]

Each run: the program under `nanquest run --on-spike record --tape`, then `nanquest-replay` on the file of its first spike. Printed: one
line for each run; how many causes were right, UNKNOWN, wrong, and not seen by the probe, for each kind and each truth; and how many of the
verdicts with a label were right, for each label. Ends with 1 if a cause or a sample is wrong, or with
--few also if one is not named.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.get("NANQUEST_BIN", ROOT / "build" / "bin"))
MODELS = ("mlp", "conv", "attention", "recurrent", "regression")
KINDS = ("sample", "batch", "moments", "weights", "rate_once", "rate", "shift")
FEW = (("mlp", "sample", 1), ("recurrent", "moments", 2), ("regression", "shift", 3), ("conv", "rate", 4))
STEPS, TAPE = 230, 32


def replayed(folder, model, kind, seed, tape):
    """(truth, incident row, verdict) of one run; nothing where there is none."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "probe" / "attach" / "python"))
    command = [sys.executable, "-m", "nanquest", "run", "--run-dir", folder / "run", "--on-spike", "record", "--keep-percent", "1000000"]
    command += ["--tape", TAPE] if tape else []
    command += ["--", sys.executable, HERE / "made.py", model, kind, seed, STEPS]
    process = subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment)
    if process.returncode:
        raise SystemExit(f"{model} {kind} {seed} ended with {process.returncode}: {process.stderr}")
    truth = json.loads(process.stdout.splitlines()[-1])
    rows = [row for row in json.loads((folder / "run" / "manifest.json").read_text())["incidents"] if row["gate"] == "spike" and row["file"]]
    near = [row for row in rows if 0 <= row["step"] - truth["step"] <= 8]
    early = [row for row in rows if row["step"] < truth["step"]]
    if not near:
        return truth, early, None, None
    replay = subprocess.run([str(BIN / "nanquest-replay"), str(folder / "run" / near[0]["file"]), "--json"], capture_output=True, text=True)
    return truth, early, near[0], json.loads(replay.stdout)


def scored(truth, verdict):
    """What became of cause and samples: right, wrong, unknown."""
    if verdict is None:
        return "not seen", ""
    cause = verdict["cause"] or "UNKNOWN"
    of_cause = "right" if cause == truth["cause"] else "unknown" if cause == "UNKNOWN" else "wrong"
    named = verdict["samples"]["poison"]
    if truth["cause"] != "SPIKE_DATA":
        return of_cause, "wrong" if named else ""
    ids = verdict["samples"]["poison_ids"]
    right = named == truth["samples"] and (not ids or ids == truth["ids"])
    return of_cause, "right" if right else "unknown" if not named else "wrong"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--seeds", type=int, nargs=2, default=(1, 2))
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--no-tape", action="store_true")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    first, last = arguments.seeds
    runs = FEW if arguments.few else [(m, k, s) for k in arguments.kinds for m in arguments.models for s in range(first, last + 1)]
    causes, samples = collections.Counter(), collections.Counter()
    by_kind, by_label = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    with open(arguments.out, "w") if arguments.out else open(os.devnull, "w") as out:
        for model, kind, seed in runs:
            with tempfile.TemporaryDirectory(prefix="nanquest-spikes-") as folder:
                truth, early, row, verdict = replayed(pathlib.Path(folder), model, kind, seed, not arguments.no_tape)
            of_cause, of_samples = scored(truth, verdict)
            causes[of_cause] += 1
            by_kind[kind][of_cause] += 1
            by_kind["truth " + truth["cause"]][of_cause] += 1
            if of_cause in ("right", "wrong"):
                by_label[verdict["cause"]][of_cause] += 1
            samples[of_samples] += bool(of_samples)
            said = verdict["cause"] if verdict else "-"
            line = f"{model:10} {kind:9} {seed:3}: {of_cause:8} {said}, truth {truth['cause']}; samples {of_samples or '-'}; {len(early)} before"
            print(line, flush=True)
            if of_cause != "right" or of_samples == "wrong":
                print("   ", verdict["explanation"] if verdict else truth["losses"], flush=True)
            json.dump({"run": [model, kind, seed], "truth": truth, "row": row, "verdict": verdict}, out)
            out.write("\n")
    for kind, counts in by_kind.items():
        print(f"| {kind} | " + " | ".join(str(counts[key]) for key in ("right", "unknown", "wrong", "not seen")) + " |")
    for label, counts in sorted(by_label.items()):
        print(f"{label}: {counts['right']} of {counts.total()} that were named so")
    print("causes:", dict(causes), "samples:", dict(samples))
    wrong = causes["wrong"] + samples["wrong"]
    return 1 if wrong or (arguments.few and causes["right"] != len(runs)) else 0


sys.exit(main())
