"""Spikes that --on-spike record sees in healthy programs (healthy_run.py): false_alarms.py [--steps N] [--seeds N] [--out DIR] [KIND …].

Prints for each program how many, and how many in 5,000 steps over all. Ends with 1 if that is more than one. DIR keeps the runs.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from healthy_run import KINDS

HERE = pathlib.Path(__file__).resolve().parent


def incidents(kind, steps, seed, out):
    """(incidents, findings) of one training."""
    environment = dict(os.environ, PYTHONPATH=str(HERE.parents[1] / "probe" / "attach" / "python"))
    with tempfile.TemporaryDirectory(prefix="nanquest-healthy-") as scratch:
        folder = out / f"{kind}-{seed}" if out else scratch
        command = [sys.executable, "-m", "nanquest", "run", "--run-dir", folder, "--on-spike", "record", "--", sys.executable, HERE / "healthy_run.py"]
        process = subprocess.run([*map(str, command), kind, str(steps), str(seed)], capture_output=True, text=True, env=environment)
        if process.returncode:
            raise SystemExit(f"{kind} ended with {process.returncode}: {process.stderr}")
        manifest = json.loads((pathlib.Path(folder) / "manifest.json").read_text())
        return manifest["incidents"], manifest.get("findings", [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    arguments = parser.parse_args()
    alarms = steps = 0
    for kind in arguments.kinds or KINDS:
        for seed in range(arguments.seeds):
            rows, found = incidents(kind, arguments.steps, seed, arguments.out)
            alarms, steps = alarms + len(rows), steps + arguments.steps
            said = [row["summary"] for row in rows] + [row["text"] for row in found]
            print(f"| {kind} | {seed} | {arguments.steps} | {len(rows)} |", *said, flush=True)
    print(f"{alarms} in {steps} steps: {5000 * alarms / steps:.2f} in 5,000")
    return alarms * 5000 > steps


if __name__ == "__main__":
    sys.exit(main())
